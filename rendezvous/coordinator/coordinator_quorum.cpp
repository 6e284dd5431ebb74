// Whether a coordinator without a memory may go on with a round that is not whole: another may have taken it over, too,
// with the nodes that are missing here.
#include <algorithm>
#include <utility>

#include "rendezvous/coordinator/coordinator.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;

// Nodes of the round that have reported and are here.
std::vector<int> Coordinator::back_again() const {
  std::vector<int> ranks;
  for (const Seat& seat : seats_) {
    const auto found = roster_.nodes().find(seat.agent);
    if (found != roster_.nodes().end() && found->second.session) ranks.push_back(seat.seat);
  }
  return ranks;
}

// Of two coordinators with half of the round each one has node 0. Without it half is enough where nobody can have the
// other half: nodes find one coordinator only, or one of the missing is dead, as where our own host has come back with
// nothing of the round.
bool Coordinator::half_is_enough(const std::vector<int>& ranks) const {
  if (config_.is_claimed || std::ranges::find(ranks, 0) != ranks.end()) return true;
  return std::ranges::any_of(roster_.nodes(), [&](const auto& entry) {
    const Node& node = entry.second;
    return node.hosts_coordinator && node.session &&
           std::ranges::find(seats_, node.agent, &Seat::agent) == seats_.end();
  });
}

bool Coordinator::may_renew_lease(NodeId session) const {
  const Node* node = roster_.of_session(session);
  return node != nullptr && (grants_leases() || node->standing() == Standing::kReady);
}

// Looks whether enough are here at once, until they have been.
void Coordinator::look_for_quorum() {
  if (rebuild_->has_quorum || 2 * static_cast<int>(seats_.size()) < rebuild_->node_count) return;
  const std::vector<int> ranks = back_again();
  const int twice = 2 * static_cast<int>(ranks.size());
  rebuild_->has_quorum = twice > rebuild_->node_count || (twice == rebuild_->node_count && half_is_enough(ranks));
  if (!rebuild_->has_quorum || !rebuild_->waits) return;
  // Nodes that were cut off mostly come together; and those that have come may hold leases of another.
  rebuild_->waits = false;
  rebuild_->until_ms = now_ms_ + config_.lease.all_back_ms();
}

// The time is over in which all should have come, and too few have: the others may train with another coordinator, and
// what runs here may not go on beside them.
void Coordinator::wait_for_quorum(Effects& out) {
  if (!rebuild_->stops) stop_round(out);
  std::vector<int> ranks = back_again();
  const int count = rebuild_->node_count;
  const std::string here = ranks.empty() ? format("none of the {} nodes of round {} is here", count, *round_)
                                         : format("only {} of the {} nodes of round {} {} here (node rank{} {})",
                                                  ranks.size(), count, *round_, ranks.size() == 1 ? "is" : "are",
                                                  ranks.size() == 1 ? "" : "s", rank_ranges(ranks));
  const std::string needed = format("{} are needed to go on{}", count / 2 + 1,
                                    count % 2 == 0 ? format(", or {} with node rank 0", count / 2) : "");
  const std::int64_t until_ms = rebuild_->began_ms + std::max(rules_.join_timeout_ms, config_.lease.all_back_ms());
  if (now_ms_ >= until_ms) {
    return end({.outcome = Outcome::kFailed,
                .reason = format("the coordinator was lost; {} s after another took over, {}; {}: the others may train "
                                 "with another coordinator",
                                 (now_ms_ - rebuild_->began_ms) / 1000, here, needed)},
               out);
  }
  if (!std::exchange(rebuild_->waits, true)) {
    out.push_back(
        Note{format("{}; {}: the others may train with another coordinator, and are waited for until "
                    "join_timeout, {} s",
                    here, needed, rules_.join_timeout_ms / 1000)});
  }
  look_again(until_ms);
  tell_what_is_awaited({.since_ms = rebuild_->began_ms, .until_ms = until_ms, .what = format("{}; {}", here, needed)},
                       out);
}

}  // namespace elastic::coordinator
