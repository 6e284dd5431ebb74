#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "health/hang/hang_test_support.h"
#include "rendezvous/coordinator/coordinator_test_support.h"
#include "rendezvous/coordinator/hang_desk.h"
#include "rendezvous/coordinator/transferred_state.h"
#include "src/base/json.h"

// Jobs that hang, for tests of their coordinator.
namespace elastic::coordinator::testing {

inline constexpr std::int64_t kLimitMs = 3'000;
// How long a job makes no progress until evidence is asked for: the limit, and the time between two samples.
inline constexpr std::int64_t kSuspectMs = kLimitMs + 5'000;

inline protocol::JobRules watching(std::optional<std::int64_t> timeout_ms = kLimitMs) {
  protocol::JobRules rules;
  rules.hang = protocol::JobRules::Hang::kReport;
  rules.hang_timeout_ms = timeout_ms;
  return rules;
}

// A job of nodes with two ranks each; their facts are those of a hung job.
struct Watched : Job {
  explicit Watched(int nodes, const protocol::JobRules& with = watching(), int ranks_per_node = 2, int least = 0,
                   std::unique_ptr<health::CheckPlan> check = health::no_check())
      : Job(job_terms(least == 0 ? nodes : least, nodes, 3), with, std::move(check)),
        facts(nodes, ranks_per_node),
        workers(ranks_per_node) {
    for (int session = 1; session <= nodes; ++session) {
      sessions.push_back(static_cast<protocol::NodeId>(session));
      join(sessions.back(), workers);
    }
    open_store();
  }
  Answer step(protocol::NodeId session, std::int64_t number, std::int64_t age_ms = 0) {
    const protocol::ProgressOfRank made{.rank = 2 * static_cast<int>(session - 1),
                                        .step = number,
                                        .age_ms = age_ms,
                                        .source = progress::Source::kMegatron,
                                        .phase = progress::Phase::kTrain};
    return say(session, protocol::NodeProgress{*coordinator.round(), made, made, 1});
  }
  Answer wait(std::int64_t ms) { return pass_with(sessions, ms); }
  // Nothing moves until evidence is asked for.
  protocol::CollectEvidence hang() {
    const Answer answer = wait(kSuspectMs + 100);
    const auto asked = answer.all<protocol::CollectEvidence>();
    REQUIRE(asked.size() == sessions.size());
    return asked.front().second;
  }
  int first_rank(protocol::NodeId session) const { return coordinator.roster().at(session).place.base_rank; }
  const hang::NodeFacts& facts_of_node(protocol::NodeId session) const {
    return facts.facts.nodes[static_cast<std::size_t>(first_rank(session) / workers)];
  }
  Answer tells(protocol::NodeId session, const protocol::CollectEvidence& order) {
    return say(session,
               protocol::NodeEvidence{order.round, order.collection, protocol::encode_facts(facts_of_node(session))});
  }
  Answer all_tell(const protocol::CollectEvidence& order) {
    Answer answer;
    for (const protocol::NodeId session : sessions) answer = tells(session, order);
    return answer;
  }

  hang::HungJob facts;
  int workers;
  std::vector<protocol::NodeId> sessions;
};

inline Json report_of(const protocol::HangTold& told) {
  auto json = Json::parse(told.report, "the report");
  REQUIRE(json.has_value());
  return *json;
}

// The coordinator of `job` is lost. Another one, for which its agents vote, takes over from what they bring: all run,
// unless `become` changes what one reports.
struct NextLeader {
  NextLeader(Watched& job, const protocol::Transferred& transferred, std::int64_t after_ms = 0,
             Coordinator::State state = Coordinator::State::kRunning,
             const std::function<void(protocol::NodeJoins&)>& become = {},
             std::unique_ptr<health::CheckPlan> check = health::no_check())
      : next(job.terms, voting(job.rules),
             {.term = 2,
              .now_ms = job.now_ms + after_ms,
              .random = 7,
              .made_ms = job.now_ms + after_ms,
              .birth_ms = job.now_ms + after_ms},
             std::move(check)) {
    next.now_ms = job.now_ms + after_ms;
    next.on(Introduced{job.coordinator.incarnation(), 1});
    for (const protocol::NodeId session : job.sessions) {
      protocol::NodeJoins joins = next.joiner(session, job.workers);
      const auto& node = job.coordinator.roster().at(session);
      joins.facts = {.incarnation = job.coordinator.incarnation(),
                     .term = 1,
                     .round = *job.coordinator.round(),
                     .activity = protocol::AgentFacts::Activity::kRunning,
                     .place = node.place,
                     .membership = 1,
                     .transferred = voting(transferred)};
      if (become) become(joins);
      for (Answer& more : std::array{next.say(session, joins), next.vote(session, joins.facts)}) {
        answer.effects.insert(answer.effects.end(), more.effects.begin(), more.effects.end());
      }
    }
    REQUIRE(next.coordinator.state() == state);
  }
  // The job's rules, but with votes.
  static protocol::JobRules voting(protocol::JobRules rules) {
    rules.failover = protocol::JobRules::Failover::kMajority;
    return rules;
  }
  static protocol::Transferred voting(protocol::Transferred transferred) {
    if (auto state = decode(transferred.state)) {
      state->rules = voting(state->rules);
      transferred.state = encode(*state);
    }
    return transferred;
  }
  Job next;
  Answer answer;
};

}  // namespace elastic::coordinator::testing
