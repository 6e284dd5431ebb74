#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rendezvous/coordinator/coordinator_test_support.h"

// Jobs in which votes count, for tests.
namespace elastic::coordinator::testing::majority {

using namespace elastic::protocol;

inline const JobRules kMajority = {.failover = JobRules::Failover::kMajority};
inline constexpr std::int64_t kHeld = 3'960;  // how long a vote counts

// The node acknowledges a lease grant that was sent now.
inline Answer acknowledge(Job& job, NodeId session, std::optional<VoterState> voter_state = {}) {
  return job.on(LeaseAckReceived{session, job.now_ms, std::move(voter_state)});
}

// How many nodes are asked for their vote at once.
inline std::size_t asked(const Answer& answer) {
  return static_cast<std::size_t>(std::ranges::count_if(answer.effects, [](const Effect& effect) {
    const auto* answered = std::get_if<AnswerKeepAlive>(&effect);
    return answered != nullptr && !answered->grant.is_lease;
  }));
}

// Three nodes that vote, and whose first round runs.
struct Three : Job {
  explicit Three(CoordinatorConfig config = {.incarnation = 7, .now_ms = -10'000}, const JobRules& with = kMajority,
                 int min_nodes = 1, std::uint16_t peer_port = 4'000)
      : Job(job_terms(min_nodes, 3), with, config) {
    coordinator.on_event(TimePassed{}, -400);
    now_ms = 0;
    for (const NodeId node : {1u, 2u, 3u}) {
      NodeJoins joins = joiner(node);
      joins.addresses = "10.0.0.1";
      joins.peer_port = peer_port;
      joins.hosts_coordinator = config.own_agent == joins.agent;
      prepared = say(node, joins).all<PrepareRound>();
    }
    for (const NodeId node : {1u, 2u, 3u}) acknowledge(*this, node);
    open_store();
  }
  std::vector<std::pair<NodeId, PrepareRound>> prepared;
};

// The voter state of this node, whose workers run that round.
inline VoterState runs(const PrepareRound& round) {
  const Round its = {round.fence.term, round.round, round.membership, round.place.node_count, round.host_rank};
  return {.rounds = {{its, round.place.node_rank, true}}};
}

// A later coordinator of the same job. Nodes come back to it with their workers running.
struct Later : Job {
  explicit Later(const Three& earlier, CoordinatorConfig config = {.incarnation = 9, .now_ms = 0})
      : Job(earlier.terms, kMajority, config), before(earlier) {
    on(Introduced{7, 1});
  }
  Answer comes(NodeId session, AgentFacts::Activity activity = AgentFacts::Activity::kRunning) {
    NodeJoins joins = joiner(session);
    const PrepareRound& round = before.prepared.at(session - 1).second;
    joins.facts = facts_of(round, 7, activity);
    joins.hosts_coordinator = coordinator.config().own_agent == joins.agent;
    joins.addresses = "10.0.0.1";
    joins.peer_port = 4'000;
    return say(session, joins);
  }
  Answer votes(NodeId session) { return acknowledge(*this, session, runs(before.prepared.at(session - 1).second)); }

  const Three& before;
};

}  // namespace elastic::coordinator::testing::majority
