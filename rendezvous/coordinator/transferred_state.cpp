#include "rendezvous/coordinator/transferred_state.h"

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

ByteString bytes_of(const TransferredState& state) {
  ByteString bytes;
  BinaryWriter writer(bytes);
  TransferredState::fields(writer, state);
  return bytes;
}

// A Unix time that may be anything, by the coordinator's clock.
std::int64_t by_clock(std::int64_t unix_ms, const TransferredParts& parts) {
  return std::clamp<std::int64_t>(unix_ms, 0, protocol::kLatestBirthMs) - parts.unix_ms + parts.now_ms;
}

}  // namespace

std::string encode(TransferredState state) {
  ByteString bytes = bytes_of(state);
  while (bytes.size() > limits::kTransferredBytes) {
    if (state.hosts.size() > state.evicted.size()) {
      state.hosts.pop_back();
    } else {
      state.evicted.pop_back();
    }
    bytes = bytes_of(state);
  }
  return {bytes.begin(), bytes.end()};
}

std::string encode_more(const TransferredMore& more) {
  ByteString bytes;
  BinaryWriter writer(bytes);
  TransferredMore::fields(writer, more);
  return {bytes.begin(), bytes.end()};
}

std::optional<TransferredMore> decode_more(std::string_view bytes) {
  const ByteString copy(bytes.begin(), bytes.end());
  BinaryReader reader(copy, BinaryReader::Ending::kMayBeEarly);
  TransferredMore more;
  TransferredMore::fields(reader, more);
  if (copy.empty() || !reader.error().empty()) return {};
  return more;
}

std::optional<TransferredState> decode(std::string_view bytes) {
  const ByteString copy(bytes.begin(), bytes.end());
  BinaryReader reader(copy, BinaryReader::Ending::kMayBeEarly);
  TransferredState state;
  TransferredState::fields(reader, state);
  if (copy.empty() || !reader.error().empty()) return {};
  return state;
}

protocol::Transferred StateTransfer::give(protocol::Term term, const TransferredParts& parts) {
  const std::int64_t offset_ms = parts.unix_ms - parts.now_ms;
  TransferredState state{.rules = parts.settings.rules,
                         .check = parts.settings.check,
                         .first_size = parts.settings.first_size,
                         .restarts_used = parts.settings.budgets.restarts.used(),
                         .losses = parts.settings.budgets.losses.losses(),
                         .crash = parts.settings.budgets.crash_loop.last()};
  put_hang(state, parts);
  for (LossBudget::Record& record : parts.settings.budgets.losses.records(limits::kTransferredHosts, parts.now_ms)) {
    state.hosts.push_back({std::move(record.node), record.losses, record.last_ms + offset_ms, record.quarantine_ms,
                           record.until_ms == 0 ? 0 : record.until_ms + offset_ms});
  }
  last_ = std::move(state);
  return numbered(term);
}

protocol::Transferred StateTransfer::give_hang(protocol::Term term, const TransferredParts& parts) {
  put_hang(last_, parts);
  return numbered(term);
}

// A later coordinator has a higher term, so that its states are newer than all before.
protocol::Transferred StateTransfer::numbered(protocol::Term term) {
  return {std::uint64_t{term} << 32 | ++given_, encode(last_)};
}

void StateTransfer::put_hang(TransferredState& state, const TransferredParts& parts) const {
  state.more = more_;
  if (auto hang = parts.hang.transfer(parts.now_ms, parts.unix_ms)) {
    TransferredMore more = decode_more(more_).value_or(TransferredMore{});
    more.hang = std::move(hang);
    state.more = encode_more(more);
  }
  state.evicted.clear();
  for (const auto& [host, why] : parts.check.evicted()) {
    if (state.evicted.size() < limits::kTransferredHosts) state.evicted.push_back({host, why == Eviction::kHung});
  }
}

StateTransfer::Taken StateTransfer::adopt_state(const protocol::Transferred& brought, TransferredParts parts) {
  if (brought.number <= taken_) return Taken::kKnown;
  const auto state = decode(brought.state);
  if (!state) return Taken::kUnreadable;
  taken_ = brought.number;
  more_ = state->more;
  last_ = *state;
  const int restarts = std::max(parts.settings.budgets.restarts.used(), state->restarts_used);
  const int losses = std::max(parts.settings.budgets.losses.losses(), state->losses);
  parts.settings = settings_of(parts.settings.terms, state->rules, state->check);
  const protocol::JobTerms& terms = parts.settings.terms;
  if (state->first_size != 0) {
    parts.settings.first_size = std::clamp(state->first_size, terms.min_nodes, terms.max_nodes);
  }
  parts.settings.budgets.restarts.set_used(std::clamp<int>(restarts, 0, limits::kMaxRestarts));
  parts.settings.budgets.losses.set_losses(losses);
  parts.settings.budgets.crash_loop.set_last(state->crash);
  for (const TransferredState::Host& host : state->hosts) {
    parts.settings.budgets.losses.restore({.node = host.name,
                                           .losses = host.losses,
                                           .last_ms = by_clock(host.last_ms, parts),
                                           .quarantine_ms = host.quarantine_ms,
                                           .until_ms = by_clock(host.until_ms, parts)},
                                          parts.now_ms);
  }
  for (const TransferredState::Evicted& host : state->evicted) {
    parts.check.evict_host(host.name, host.by_hang ? Eviction::kHung : Eviction::kUnhealthy);
  }
  parts.hang.follow(parts.settings.rules);
  const auto more = decode_more(state->more);
  if (more && more->hang) parts.hang.inherit(*more->hang, parts.unix_ms);
  return Taken::kNew;
}

}  // namespace elastic::coordinator
