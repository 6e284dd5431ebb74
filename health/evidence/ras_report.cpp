#include "health/evidence/ras_report.h"

#include <algorithm>
#include <utility>

#include "health/evidence/ras_text.h"
#include "src/base/json.h"
#include "src/base/text.h"

namespace elastic::evidence {
namespace {

constexpr std::string_view kReport = "NCCL's RAS report";

std::int64_t integer_in(const Json& object, std::string_view name, std::int64_t otherwise = 0) {
  const Json* member = object.find(name);
  return member == nullptr ? otherwise : member->as_integer().value_or(otherwise);
}

bool flag_in(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  return member != nullptr && member->as_bool().value_or(false);
}

std::string text_in(const Json& object, std::string_view name) {
  return printable(object.text_or_empty(name), kRasTextBytes);
}

const Json::Array& list_in(const Json& object, std::string_view name) {
  static const Json::Array kNone;
  const Json* member = object.find(name);
  return member == nullptr || member->as_array() == nullptr ? kNone : *member->as_array();
}

RasProcess process_in(const Json& object) { return {text_in(object, "host"), integer_in(object, "pid", -1)}; }

std::optional<int> rank_in(const Json& object) {
  const std::int64_t rank = integer_in(object, "rank", -1);
  return rank >= 0 && rank < INT32_MAX ? std::optional(static_cast<int>(rank)) : std::nullopt;
}

std::optional<RasRank> read_rank(const Json& object) {
  const auto number = rank_in(object);
  const Json* counts = object.find("collective_counts");
  if (!number || counts == nullptr) return {};
  RasRank rank{.rank = *number, .process = process_in(object)};
  for (std::size_t i = 0; i < kRasCollectives.size(); ++i) rank.launched[i] = integer_in(*counts, kRasCollectives[i]);
  if (const Json* status = object.find("status")) {
    rank.init_state = integer_in(*status, "init_state");
    rank.async_error = integer_in(*status, "async_error");
    rank.is_ending =
        flag_in(*status, "finalize_called") || flag_in(*status, "destroy_flag") || flag_in(*status, "abort_flag");
  }
  return rank;
}

std::optional<RasMissingRank> read_missing(const Json& object) {
  const auto number = rank_in(object);
  if (!number) return {};
  RasMissingRank rank{.rank = *number, .process = process_in(object)};
  if (const Json* status = object.find("status")) {
    rank.is_silent = flag_in(*status, "unresponsive");
    rank.is_dead = flag_in(*status, "considered_dead");
  }
  return rank;
}

// Appends what read() makes of each item, as long as there is room for more ranks.
template <class Rank, class Read>
void read_ranks(const Json::Array& items, Read read, std::vector<Rank>& ranks, std::size_t& room,
                std::size_t& left_out) {
  for (const Json& item : items) {
    auto rank = read(item);
    if (!rank || room == 0) {
      ++left_out;
      continue;
    }
    ranks.push_back(std::move(*rank));
    --room;
  }
}

Result<RasReport> read_json_report(std::string_view text) {
  const std::string what = format("cannot read {}", kReport);
  if (std::string wrong = json_over_bounds(text, kRasJsonLevels, kRasJsonMembers); !wrong.empty()) {
    return fail(what, std::move(wrong));
  }
  const auto json = Json::parse(text, std::string(kReport));
  if (!json) return std::unexpected(json.error());
  const Json* communicators = json->find("communicators");
  if (communicators == nullptr || communicators->as_array() == nullptr) {
    return fail(what, "it has no list of communicators");
  }
  RasReport report{.nccl_version = text_in(*json, "nccl_version"), .has_counts = true};
  if (const Json* ras = json->find("ras")) report.timeouts = integer_in(*ras, "timeouts_count");
  std::size_t room = kRasRanks;
  for (const Json& object : *communicators->as_array()) {
    if (object.as_object() == nullptr || report.communicators.size() == kRasCommunicators) {
      ++report.left_out;
      continue;
    }
    RasCommunicator& communicator = report.communicators.emplace_back();
    communicator.hash = text_in(object, "hash");
    if (std::string second = text_in(object, "secondary_hash"); !second.empty()) communicator.hash += ":" + second;
    communicator.size = integer_in(object, "size");
    read_ranks(list_in(object, "ranks"), read_rank, communicator.ranks, room, report.left_out);
    read_ranks(list_in(object, "missing_ranks"), read_missing, communicator.missing, room, report.left_out);
    communicator.missing_ranks = static_cast<std::int64_t>(communicator.missing.size());
  }
  return report;
}

// The text with the comma that NCCL 2.28.9 leaves out behind a missing rank's "nvml_dev"; empty if none is left out.
std::string with_left_out_commas(std::string_view text) {
  constexpr std::string_view kBefore = "\"nvml_dev\":";
  constexpr std::string_view kNumber = " -0123456789";
  constexpr std::string_view kBlanks = " \t\r\n";
  std::string repaired;
  std::size_t copied = 0;
  for (std::size_t at = text.find(kBefore); at != std::string_view::npos; at = text.find(kBefore, at + 1)) {
    const std::size_t number_ends = text.find_first_not_of(kNumber, at + kBefore.size());
    const std::size_t next = text.find_first_not_of(kBlanks, number_ends);
    if (next == std::string_view::npos || next == number_ends || text[next] != '"') continue;
    repaired += text.substr(copied, number_ends - copied);
    repaired += ',';
    copied = number_ends;
  }
  return copied == 0 ? std::string() : repaired.append(text.substr(copied));
}

}  // namespace

Result<RasReport> read_ras_report(std::string_view text) {
  if (text.size() > kRasBytes) {
    return fail(format("cannot read {}", kReport), format("it has more than {} MiB", kRasBytes >> 20));
  }
  if (!trim(text.substr(0, kRasTextBytes)).starts_with('{')) return read_ras_text(text);
  const std::string repaired = with_left_out_commas(text);
  return read_json_report(repaired.empty() ? text : repaired);
}

}  // namespace elastic::evidence
