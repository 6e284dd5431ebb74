#include "health/evidence/control_answer.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "src/base/text.h"

namespace elastic::evidence {
namespace {

constexpr int kOk = 200;
constexpr int kNoSuchHandler = 404;

std::string_view backend_of(const FlightGroup& group) {
  return group.newest ? std::string_view(group.newest->backend) : std::string_view();
}

}  // namespace

std::string control_request(std::string_view handler) {
  return format("POST /handler/{} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                handler);
}

std::optional<ControlAnswer::Dump> ControlAnswer::feed(std::string_view bytes) {
  const auto step = reader_.read_bytes({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  if (step == net::http::ResponseReader::Step::kNeedMore) return {};
  return read(step);
}

ControlAnswer::Dump ControlAnswer::closed() { return read(reader_.end()); }

ControlAnswer::Dump ControlAnswer::read(net::http::ResponseReader::Step step) {
  const std::string what = "cannot read what the control server answers";
  if (step == net::http::ResponseReader::Step::kRefused) return fail(what, reader_.problem());
  if (reader_.status() == kNoSuchHandler) return std::nullopt;
  if (reader_.status() != kOk) return fail(what, format("its status is {}", reader_.status()));
  return flight_facts_of_json(reader_.body());
}

FlightFacts of_both_recorders(FlightFacts nccl, FlightFacts others) {
  FlightFacts both = std::move(nccl);
  const auto is_known = [&both](const FlightGroup& group) {
    return std::ranges::any_of(both.groups, [&](const FlightGroup& known) {
      return known.name == group.name && known.description == group.description &&
             backend_of(known) == backend_of(group);
    });
  };
  std::erase_if(others.groups, is_known);
  std::ranges::move(others.groups, std::back_inserter(both.groups));
  both.entries += others.entries;
  both.entries_left_out += others.entries_left_out;
  both.oldest_record = std::max(both.oldest_record, others.oldest_record);
  both.is_cut = both.is_cut || others.is_cut;
  both.has_more_groups = both.has_more_groups || others.has_more_groups || both.groups.size() > kFlightGroups;
  if (both.groups.size() > kFlightGroups) both.groups.resize(kFlightGroups);
  return both;
}

}  // namespace elastic::evidence
