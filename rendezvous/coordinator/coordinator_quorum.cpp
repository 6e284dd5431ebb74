// Whether a coordinator that takes over a round may go on with a part of its nodes: another coordinator may have taken
// over the same round with the nodes that are missing here.
#include <algorithm>
#include <utility>

#include "rendezvous/coordinator/coordinator.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;

// The ranks of the nodes of the round that have reported and are connected.
std::vector<int> Coordinator::back_again() const {
  std::vector<int> ranks;
  for (const Seat& seat : seats_) {
    const auto found = roster_.nodes().find(seat.agent);
    if (found != roster_.nodes().end() && found->second.session) ranks.push_back(seat.seat);
  }
  return ranks;
}

// Of two coordinators with half of the round each, one has node 0. Without node 0, half is enough if no other
// coordinator can have the other half: nodes can find one coordinator only, or a missing node is dead, as when this
// coordinator's own host has restarted and knows nothing of the round.
bool Coordinator::half_is_enough(const std::vector<int>& ranks) const {
  if (config_.is_claimed || std::ranges::find(ranks, 0) != ranks.end()) return true;
  return std::ranges::any_of(roster_.nodes(), [&](const auto& entry) {
    const Node& node = entry.second;
    return node.hosts_coordinator && node.session && !has_seat(seats_, node.agent);
  });
}

bool Coordinator::may_renew_lease(NodeId session) const {
  const Node* node = roster_.of_session(session);
  return node != nullptr && (grants_leases() || node->standing() == Standing::kReady);
}

// Notices when enough nodes of the round are connected at once.
void Coordinator::look_for_quorum() {
  if (rebuild_->has_quorum || 2 * static_cast<int>(seats_.size()) < rebuild_->node_count) return;
  const std::vector<int> ranks = back_again();
  const int twice = 2 * static_cast<int>(ranks.size());
  rebuild_->has_quorum = twice > rebuild_->node_count || (twice == rebuild_->node_count && half_is_enough(ranks));
  if (!rebuild_->has_quorum || !rebuild_->waits) return;
  // Nodes that were cut off mostly come back together, and may hold leases of another coordinator.
  rebuild_->waits = false;
  rebuild_->until_ms = now_ms_ + config_.lease.all_back_ms();
}

// Too few nodes came back in time. The others may train with another coordinator, so that the workers that run here
// have to be stopped.
void Coordinator::wait_for_quorum(Effects& out) {
  if (!rebuild_->stops) stop_round(out);
  std::vector<int> ranks = back_again();
  const int count = rebuild_->node_count;
  const std::string here = ranks.empty() ? format("none of the {} nodes of round {} has reconnected", count, *round_)
                                         : format("only {} of the {} nodes of round {} {} reconnected (node {} {})",
                                                  ranks.size(), count, *round_, ranks.size() == 1 ? "has" : "have",
                                                  plural("rank", ranks.size()), rank_ranges(ranks));
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
        Note{format("{}; {}: the others may train with another coordinator; waiting for them until "
                    "join_timeout, {} s",
                    here, needed, rules_.join_timeout_ms / 1000)});
  }
  look_again(until_ms);
  tell_what_is_awaited({.since_ms = rebuild_->began_ms, .until_ms = until_ms, .what = format("{}; {}", here, needed)},
                       out);
}

}  // namespace elastic::coordinator
