#include "rendezvous/coordinator/carried_state.h"

#include <algorithm>
#include <utility>

#include "rendezvous/coordinator/limits.h"
#include "rendezvous/protocol/binary_archive.h"
#include "rendezvous/protocol/fence.h"
#include "rendezvous/protocol/limits.h"
#include "src/base/limits.h"

namespace elastic::coordinator {

using protocol::BinaryReader;
using protocol::BinaryWriter;
using protocol::ByteString;

namespace {

ByteString bytes_of(const CarriedState& state) {
  ByteString bytes;
  BinaryWriter writer(bytes);
  CarriedState::fields(writer, state);
  return bytes;
}

// A Unix time that may be anything, by the coordinator's clock.
std::int64_t by_clock(std::int64_t unix_ms, const CarriedParts& parts) {
  return std::clamp<std::int64_t>(unix_ms, 0, protocol::kLatestBirthMs) - parts.unix_ms + parts.now_ms;
}

}  // namespace

std::string encode(CarriedState state) {
  ByteString bytes = bytes_of(state);
  while (bytes.size() > limits::kCarriedBytes) {
    if (state.hosts.size() > state.excluded.size()) {
      state.hosts.pop_back();
    } else {
      state.excluded.pop_back();
    }
    bytes = bytes_of(state);
  }
  return {bytes.begin(), bytes.end()};
}

std::string encode_more(const CarriedMore& more) {
  ByteString bytes;
  BinaryWriter writer(bytes);
  CarriedMore::fields(writer, more);
  return {bytes.begin(), bytes.end()};
}

std::optional<CarriedMore> decode_more(std::string_view bytes) {
  const ByteString copy(bytes.begin(), bytes.end());
  BinaryReader reader(copy, BinaryReader::Ending::kMayBeEarly);
  CarriedMore more;
  CarriedMore::fields(reader, more);
  if (copy.empty() || !reader.error().empty()) return {};
  return more;
}

std::optional<CarriedState> decode(std::string_view bytes) {
  const ByteString copy(bytes.begin(), bytes.end());
  BinaryReader reader(copy, BinaryReader::Ending::kMayBeEarly);
  CarriedState state;
  CarriedState::fields(reader, state);
  if (copy.empty() || !reader.error().empty()) return {};
  return state;
}

protocol::Carried Handover::give(protocol::Term term, const CarriedParts& parts) {
  const std::int64_t offset_ms = parts.unix_ms - parts.now_ms;
  CarriedState state{.rules = parts.settings.rules,
                     .check = parts.settings.check,
                     .first_size = parts.settings.first_size,
                     .restarts_used = parts.budgets.restarts.used(),
                     .losses = parts.budgets.losses.losses(),
                     .crash = parts.budgets.crash_loop.last()};
  put_hang(state, parts);
  for (LossBudget::Record& record : parts.budgets.losses.records(limits::kCarriedHosts, parts.now_ms)) {
    state.hosts.push_back({std::move(record.node), record.losses, record.last_ms + offset_ms, record.keep_out_ms,
                           record.until_ms == 0 ? 0 : record.until_ms + offset_ms});
  }
  last_ = std::move(state);
  return numbered(term);
}

protocol::Carried Handover::give_hang(protocol::Term term, const CarriedParts& parts) {
  put_hang(last_, parts);
  return numbered(term);
}

// A later coordinator has a higher term, so that its states are newer than all before.
protocol::Carried Handover::numbered(protocol::Term term) {
  return {std::uint64_t{term} << 32 | ++given_, encode(last_)};
}

void Handover::put_hang(CarriedState& state, const CarriedParts& parts) const {
  state.more = more_;
  if (auto hang = parts.hang.hand_over(parts.now_ms, parts.unix_ms)) {
    CarriedMore more = decode_more(more_).value_or(CarriedMore{});
    more.hang = std::move(hang);
    state.more = encode_more(more);
  }
  state.excluded.clear();
  for (const auto& [host, why] : parts.check.excluded()) {
    if (state.excluded.size() < limits::kCarriedHosts) state.excluded.push_back({host, why == Exclusion::kHung});
  }
}

Handover::Taken Handover::take(const protocol::Carried& brought, CarriedParts parts) {
  if (brought.number <= taken_) return Taken::kKnown;
  const auto state = decode(brought.state);
  if (!state) return Taken::kUnreadable;
  taken_ = brought.number;
  more_ = state->more;
  last_ = *state;
  const int restarts = std::max(parts.budgets.restarts.used(), state->restarts_used);
  const int losses = std::max(parts.budgets.losses.losses(), state->losses);
  parts.settings = settings_of(parts.settings.terms, state->rules, state->check);
  const protocol::JobTerms& terms = parts.settings.terms;
  if (state->first_size != 0) {
    parts.settings.first_size = std::clamp(state->first_size, terms.min_nodes, terms.max_nodes);
  }
  parts.budgets = budgets_of(parts.settings);
  parts.budgets.restarts.set_used(std::clamp<int>(restarts, 0, limits::kMaxRestarts));
  parts.budgets.losses.set_losses(losses);
  parts.budgets.crash_loop.set_last(state->crash);
  for (const CarriedState::Host& host : state->hosts) {
    parts.budgets.losses.restore({.node = host.name,
                                  .losses = host.losses,
                                  .last_ms = by_clock(host.last_ms, parts),
                                  .keep_out_ms = host.keep_out_ms,
                                  .until_ms = by_clock(host.until_ms, parts)},
                                 parts.now_ms);
  }
  for (const CarriedState::Excluded& host : state->excluded) {
    parts.check.exclude_host(host.name, host.by_hang ? Exclusion::kHung : Exclusion::kUnfit);
  }
  parts.hang.follow(parts.settings.rules);
  const auto more = decode_more(state->more);
  if (more && more->hang) parts.hang.inherit(*more->hang, parts.unix_ms);
  return Taken::kNew;
}

}  // namespace elastic::coordinator
