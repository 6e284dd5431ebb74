// The job's status, for /status and /metrics.
#include <algorithm>

#include "rendezvous/coordinator/coordinator.h"
#include "src/base/address.h"

namespace elastic::coordinator {

using membership::Node;
using membership::Standing;
using status::Place;
using State = Coordinator::State;

namespace {

Place place_of(const Node& node, State state, bool is_checking) {
  switch (node.standing()) {
    case Standing::kReady:
      return state == State::kPreparing || state == State::kRunning || state == State::kStopping ? Place::kStandby
                                                                                                 : Place::kWaiting;
    case Standing::kMember:
    case Standing::kDone: return is_checking ? Place::kChecking : Place::kInRound;
    case Standing::kStopping:
    case Standing::kLeaving: return Place::kStopping;
    case Standing::kLost: return Place::kLost;
  }
  return Place::kWaiting;
}

}  // namespace

status::Job Coordinator::status(std::int64_t now_ms, std::size_t most_members,
                                const std::function<std::string(protocol::NodeId session)>& address_of) const {
  now_ms = std::max(now_ms, now_ms_);
  status::Job job{.min_nodes = settings_.terms.min_nodes,
                  .max_nodes = settings_.terms.max_nodes,
                  .restarts_charged = budgets_.restarts.used(),
                  .max_restarts = budgets_.restarts.limit(),
                  .node_losses = budgets_.losses.losses(),
                  .again_because = again_.because};
  if (round_) job.round = *round_;
  statistics_.tell(job, now_ms);
  for (const auto& [agent, node] : roster_.nodes()) {
    const Place place = place_of(node, state_, is_checking());
    ++job.nodes[static_cast<std::size_t>(place)];
    const bool is_in_round = place != Place::kWaiting && place != Place::kStandby;
    if (is_in_round) job.world_size = std::max<std::int64_t>(job.world_size, node.place.world_size);
    if (job.members.size() >= most_members) {
      ++job.members_left_out;
      continue;
    }
    job.members.push_back({.name = node.address,
                           .place = place,
                           .workers = node.shape.local_world_size,
                           .hosts_coordinator = node.hosts_coordinator,
                           .silent_ms = std::max<std::int64_t>(now_ms - node.last_heard_ms, 0)});
    if (node.door != 0 && node.session && address_of) {
      job.members.back().door = with_port(address_of(*node.session), node.door);
    }
    if (is_in_round) job.members.back().node_rank = node.place.node_rank;
  }
  job.nodes[static_cast<std::size_t>(Place::kKeptOut)] = static_cast<std::int64_t>(budgets_.losses.kept_out(now_ms));
  job.nodes[static_cast<std::size_t>(Place::kUnfit)] = static_cast<std::int64_t>(check_.excluded().size());
  std::ranges::stable_sort(job.members, [](const status::Member& left, const status::Member& right) {
    return left.node_rank.value_or(INT32_MAX) < right.node_rank.value_or(INT32_MAX);
  });
  return job;
}

}  // namespace elastic::coordinator
