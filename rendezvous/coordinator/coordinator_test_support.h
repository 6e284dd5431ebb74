#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/coordinator/coordinator.h"

// A coordinator with a virtual clock, for tests.
namespace elastic::coordinator::testing {

using Activity = protocol::AgentFacts::Activity;
using State = Coordinator::State;

inline protocol::JobTerms job_terms(int min, int max, int max_restarts = 0, int unit = 1) {
  return {.min_nodes = min, .max_nodes = max, .node_unit = unit, .max_restarts = max_restarts};
}

// The facts that a node reports about a round that it was in.
inline protocol::AgentFacts facts_of(const protocol::PrepareRound& round, protocol::Incarnation incarnation,
                                     protocol::AgentFacts::Activity activity) {
  return {.incarnation = incarnation,
          .term = 1,
          .round = round.round,
          .activity = activity,
          .place = round.place,
          .restart_count = round.restart_count,
          .losses = round.losses,
          .membership = round.membership,
          .birth_ms = round.fence.birth_ms,
          .transferred = round.transferred};
}

inline protocol::WorkerFailure failure(int rank, std::int64_t wall_ms, bool stopped_by_us = false) {
  return {.rank = rank,
          .local_rank = rank,
          .pid = 100 + rank,
          .exit = {.code = 1},
          .wall_ms = wall_ms,
          .stopped_by_us = stopped_by_us};
}

// The effects of one event.
struct Answer {
  Effects effects;

  // The messages of one kind, with the sessions that they go to.
  template <class Message>
  std::vector<std::pair<protocol::NodeId, Message>> all() const {
    std::vector<std::pair<protocol::NodeId, Message>> found;
    for (const Effect& effect : effects) {
      const auto* send = std::get_if<Send>(&effect);
      if (send == nullptr) continue;
      if (const auto* message = std::get_if<Message>(&send->message)) found.emplace_back(send->to, *message);
    }
    return found;
  }
  // The one message of this kind.
  template <class Message>
  Message only() const {
    const auto found = all<Message>();
    REQUIRE(found.size() == 1);
    return found[0].second;
  }
  // The message of this kind that goes to this session.
  template <class Message>
  Message to(protocol::NodeId session) const {
    for (const auto& [receiver, message] : all<Message>()) {
      if (receiver == session) return message;
    }
    FAIL("no such message");
    return {};
  }
  // No message is sent, except Awaiting.
  bool silent() const {
    for (const Effect& effect : effects) {
      const auto* send = std::get_if<Send>(&effect);
      const bool is_news = send != nullptr && std::holds_alternative<protocol::Awaiting>(send->message);
      const bool is_ours = std::holds_alternative<Note>(effect) || std::holds_alternative<TryPeerPort>(effect) ||
                           std::holds_alternative<AnswerKeepAlive>(effect);
      if (!is_news && !is_ours) return false;
    }
    return true;
  }
  bool dropped(protocol::NodeId session) const {
    for (const Effect& effect : effects) {
      if (const auto* drop = std::get_if<Drop>(&effect); drop != nullptr && drop->session == session) return true;
    }
    return false;
  }
};

// A job whose sessions and agents have the same numbers unless a test says otherwise.
struct Job {
  // The coordinator has run for so long that no worker of an earlier coordinator can be alive.
  explicit Job(protocol::JobTerms with_terms, protocol::JobRules with_rules = {},
               std::unique_ptr<health::CheckPlan> check = health::no_check())
      : Job(with_terms, with_rules, {.now_ms = -10'000}, std::move(check)) {
    coordinator.on_event(TimePassed{}, -400);
    now_ms = 0;
  }
  Job(protocol::JobTerms with_terms, protocol::JobRules with_rules, CoordinatorConfig config,
      std::unique_ptr<health::CheckPlan> check = health::no_check())
      : terms(with_terms), rules(with_rules), coordinator(config, std::move(check)), now_ms(config.now_ms) {}

  // Peer ports that are tried answer at once.
  // The node's keep-alive is answered by a lease.
  bool keeps(protocol::NodeId session) {
    return std::ranges::any_of(on(KeepAliveReceived{session}).effects, [&](const Effect& effect) {
      const auto* answered = std::get_if<AnswerKeepAlive>(&effect);
      return answered != nullptr && answered->to == session && answered->grant.is_lease;
    });
  }
  Answer on(const Event& event) {
    Answer answer{coordinator.on_event(event, now_ms)};
    for (std::size_t i = 0; i < answer.effects.size() && peer_ports_answer; ++i) {
      const auto* peer_port = std::get_if<TryPeerPort>(&answer.effects[i]);
      if (peer_port == nullptr) continue;
      const Effects more = coordinator.on_event(PeerPortTried{peer_port->agent, peer_port->addresses}, now_ms);
      answer.effects.insert(answer.effects.end(), more.begin(), more.end());
    }
    return answer;
  }
  Answer say(protocol::NodeId from, protocol::AgentMessage message) {
    return on(MessageReceived{from, std::move(message)});
  }

  protocol::NodeJoins joiner(protocol::AgentId agent, int workers = 1) const {
    const bool has_peer_server = rules.failover == protocol::JobRules::Failover::kMajority;
    return {.local_world_size = workers,
            .role = "default",
            .agent = agent,
            .address = "node" + std::to_string(agent),
            .terms = terms,
            .rules = rules,
            .addresses = has_peer_server ? "10.0.0." + std::to_string(agent) : "",
            .check = check_rules,
            .peer_port = static_cast<std::uint16_t>(has_peer_server ? 4000 : 0)};
  }
  Answer join(protocol::NodeId session, int workers = 1) { return say(session, joiner(session, workers)); }

  // These nodes join, and their round is brought to kRunning.
  void run(const std::vector<protocol::NodeId>& sessions) {
    for (const protocol::NodeId session : sessions) join(session);
    open_store();
  }
  // The node has stopped the present round.
  Answer stop(protocol::NodeId session, std::vector<protocol::WorkerFailure> failures = {}) {
    return say(session, protocol::NodeStopped{*coordinator.round(), std::move(failures)});
  }
  Answer fail(protocol::NodeId session, const protocol::WorkerFailure& with) {
    return say(session, protocol::WorkerFailed{*coordinator.round(), with});
  }
  // The store of the round that is being prepared is open.
  Answer open_store() {
    for (protocol::NodeId session = 0; session < 64; ++session) {
      Answer answer = say(session, protocol::StoreIsOpen{*coordinator.round(), {"10.0.0.1", 4000}});
      if (!answer.all<protocol::RunWorkers>().empty()) return answer;
    }
    FAIL("nobody's store was awaited");
    return {};
  }
  // Lets time pass: the coordinator gets TimePassed at each of its deadlines. Returns all effects.
  Answer pass(std::int64_t ms) {
    const std::int64_t until_ms = now_ms + ms;
    Answer all;
    for (;;) {
      const auto next_ms = coordinator.next_deadline_ms();
      if (!next_ms || *next_ms > until_ms) break;
      now_ms = *next_ms > now_ms ? *next_ms : now_ms;
      Answer answer = on(TimePassed{});
      all.effects.insert(all.effects.end(), answer.effects.begin(), answer.effects.end());
      REQUIRE(coordinator.next_deadline_ms() != next_ms);
    }
    now_ms = until_ms;
    return all;
  }
  // The node votes for this coordinator, which takes over the round that the node reports. Each node that a candidate
  // asks for its vote gives it. Workers may run on other nodes until all leases are over.
  Answer vote(protocol::NodeId session, const protocol::AgentFacts& facts) {
    votes = true;
    const protocol::Round round = {facts.term, facts.round, facts.membership, facts.place.node_count, 0};
    Answer all =
        on(LeaseAckReceived{session, now_ms,
                            protocol::VoterState{.rounds = {{round, facts.place.node_rank, true}},
                                                 .others_may_run_for_ms = coordinator.config().lease.over_ms()}});
    std::vector<protocol::NodeId> asked;
    for (const Effect& effect : all.effects) {
      const auto* answered = std::get_if<AnswerKeepAlive>(&effect);
      if (answered != nullptr && !answered->grant.is_lease) asked.push_back(answered->to);
    }
    for (const protocol::NodeId voter : asked) {
      Answer answer = on(LeaseAckReceived{voter, now_ms, {}});
      all.effects.insert(all.effects.end(), answer.effects.begin(), answer.effects.end());
    }
    return all;
  }
  // Each of these nodes says that it is alive and, once any node has voted, renews its vote.
  void keep_alive(const std::vector<protocol::NodeId>& sessions) {
    for (const protocol::NodeId session : sessions) {
      on(KeepAliveReceived{session});
      if (votes) on(LeaseAckReceived{session, now_ms, {}});
    }
  }
  // Lets time pass, while these sessions keep alive every 100 ms.
  Answer pass_with(const std::vector<protocol::NodeId>& alive, std::int64_t ms) {
    Answer all;
    for (std::int64_t passed_ms = 0; passed_ms < ms; passed_ms += 100) {
      keep_alive(alive);
      Answer answer = pass(100);
      all.effects.insert(all.effects.end(), answer.effects.begin(), answer.effects.end());
    }
    return all;
  }

  protocol::JobTerms terms;
  protocol::JobRules rules;
  health::CheckRules check_rules;
  Coordinator coordinator;
  std::int64_t now_ms;
  bool peer_ports_answer = true;
  bool votes = false;
};

}  // namespace elastic::coordinator::testing
