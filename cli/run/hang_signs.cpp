#include "cli/run/hang_signs.h"

namespace elastic::run {
namespace {

// Bytes a second that all processes together read and write, from which on a checkpoint may be under way.
constexpr std::uint64_t kMovesBytes = 1'000'000;

bool is_disk(char state) { return state == 'D'; }
bool is_stop(char state) { return state == 'T' || state == 't'; }
// A process that waits is found in one sleep or another; only these states say something.
bool same_kind(char one, char other) { return is_disk(one) == is_disk(other) && is_stop(one) == is_stop(other); }

}  // namespace

HangSigns::Signs HangSigns::signs_in(std::span<const Seen> processes, std::int64_t now_ms) {
  Signs signs;
  std::uint64_t moved = 0;
  pids_.clear();
  for (auto& [pid, known] : known_) known.is_seen = false;
  for (const Seen& seen : processes) {
    if (seen.is.state == 0) continue;
    if (seen.local_rank) pids_.emplace(*seen.local_rank, seen.pid);
    const auto [place, is_new] = known_.try_emplace(seen.pid);
    Known& known = place->second;
    const bool is_same = !is_new && known.is.started_ticks == seen.is.started_ticks;
    if (is_same && known.is.bytes && seen.is.bytes && *seen.is.bytes > *known.is.bytes) {
      moved += *seen.is.bytes - *known.is.bytes;
    }
    // A wait of a moment is normal: one that lasts was there at the look before, and cost no time since.
    const bool stays = is_same && same_kind(known.is.state, seen.is.state) &&
                       (!is_disk(seen.is.state) || known.is.cpu_ticks == seen.is.cpu_ticks);
    if (!stays) known.since_ms = now_ms;
    known.is = seen.is;
    known.is_seen = true;
    if (!seen.local_rank) continue;
    signs.waits_for_disk |= is_disk(seen.is.state) && stays;
    signs.is_stopped |= is_stop(seen.is.state) && stays;
  }
  std::erase_if(known_, [](const auto& entry) { return !entry.second.is_seen; });
  if (looked_ms_ && now_ms > *looked_ms_) {
    signs.disks_move = moved * 1000 / static_cast<std::uint64_t>(now_ms - *looked_ms_) >= kMovesBytes;
  }
  looked_ms_ = now_ms;
  return signs;
}

std::optional<std::int64_t> HangSigns::since_ms(int local_rank) const {
  const auto pid = pids_.find(local_rank);
  if (pid == pids_.end()) return {};
  return known_.at(pid->second).since_ms;
}

}  // namespace elastic::run
