#include "tests/simulation/election_rules.h"

#include <algorithm>

#include "rendezvous/protocol/term.h"
#include "src/base/text.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

using namespace protocol;
using coordinator::TransferredState;

void ElectionRules::sent(const Node& node, AgentId agent, const Stamp& stamp, const PrepareRound& message,
                         const Server& server) {
  check_may_act(node, stamp, server, "PrepareRound");
  const Job job{node.setup().job, stamp.incarnation};
  const auto [entry, is_first] = rounds_.try_emplace({job.first, job.second, stamp.term, message.round});
  Prepared& round = entry->second;
  round.members[message.place.node_rank] = agent;
  if (!is_first) return;
  round.before = message.before;
  round.transferred = coordinator::decode(message.transferred.state);
  const auto before = last_.find(job);
  if (before == last_.end() || before->second.term == stamp.term || !round.transferred) return;
  check_transferred(job, round, before->second);
}

void ElectionRules::sent(const Node& node, const Stamp& stamp, const RunWorkers& message, const Server& server) {
  check_may_act(node, stamp, server, "RunWorkers");
  const Key key{node.setup().job, stamp.incarnation, stamp.term, message.round};
  Prepared& round = rounds_[key];
  if (round.has_run) return;
  round.has_run = true;
  check_heard(round, key);
  if (!round.transferred) return;
  const coordinator::Coordinator* const coordinator = server.find(node.setup().job);
  const bool asks = coordinator != nullptr && coordinator->leader().grant_for(false).has_value();
  last_[{node.setup().job, stamp.incarnation}] = {stamp.term, *round.transferred, asks};
}

void ElectionRules::sent(const Node& node, const Stamp& stamp, const EndJob& message, const Server& server) {
  if (!is_new({node.setup().job, stamp.incarnation}, message.job_result)) return;
  check_may_act(node, stamp, server, "EndJob");
}

// A node that could not be told at once may hear it when the coordinator may not act any more.
void ElectionRules::has_acted(const std::string& job, const Server& server) {
  const coordinator::Coordinator* const coordinator = server.find(job);
  if (coordinator == nullptr || !coordinator->ending().job_result()) return;
  if (!is_new({job, coordinator->incarnation()}, *coordinator->ending().job_result())) return;
  if (may_act(job, coordinator->incarnation(), server)) return;
  simulation_.invariants().broken("who binds nodes may act",
                                  format("server {} ends {} without authority", server.number(), job));
}

// Whether no coordinator has given this job result before; it has now.
bool ElectionRules::is_new(const Job& job, const JobResult& job_result) {
  std::vector<JobResult>& given = given_[job];
  const auto is_same = [&](const JobResult& other) {
    return other.outcome == job_result.outcome && other.reason == job_result.reason;
  };
  if (std::ranges::any_of(given, is_same)) return false;
  given.push_back(job_result);
  return true;
}

void ElectionRules::heard(const Node& node, AgentId agent, const Stamp& stamp, RoundNumber round) {
  rounds_[{node.setup().job, stamp.incarnation, stamp.term, round}].hearers.insert(agent);
}

bool ElectionRules::may_act(const std::string& job, Incarnation incarnation, const Server& server) {
  const coordinator::Coordinator* const coordinator = server.find(job);
  // The coordinator has ended with this message, or before: its job result is passed on.
  if (coordinator == nullptr || coordinator->incarnation() != incarnation) return true;
  const election::Leader& leader = coordinator->leader();
  if (!server.is_up() || !leader.may_act()) return false;
  return !leader.needs_votes() || leader.is_sole_leader(server.clock_ms());
}

void ElectionRules::check_may_act(const Node& node, const Stamp& stamp, const Server& server, const char* what) const {
  if (may_act(node.setup().job, stamp.incarnation, server)) return;
  simulation_.invariants().broken("who binds nodes may act",
                                  format("server {} sends {} to node {} of {} without authority", server.number(), what,
                                         node.index(), node.setup().job));
}

bool ElectionRules::is_gone(AgentId agent) const {
  if (leaving_.contains(agent)) return true;
  return std::ranges::none_of(simulation_.nodes(),
                              [agent](const auto& node) { return node->is_running() && node->agent_id() == agent; });
}

void ElectionRules::check_heard(const Prepared& round, const Key& key) const {
  for (const Round& before : round.before) {
    const auto known = rounds_.find({std::get<0>(key), std::get<1>(key), before.term, before.number});
    if (known == rounds_.end()) continue;
    int count = 0;
    bool has_tie_breaker = false;
    for (const auto& [rank, agent] : known->second.members) {
      if (!round.hearers.contains(agent) && !is_gone(agent)) continue;
      ++count;
      if (before.tie_breaker == rank) has_tie_breaker = true;
    }
    const bool is_half = 2 * count == before.node_count;
    if (2 * count > before.node_count || (is_half && (has_tie_breaker || !before.tie_breaker))) continue;
    simulation_.invariants().broken(
        "a round that runs was heard of by a quorum of the one before",
        format("{} of {} nodes of round {} of term {} have heard of round {} of term {}", count, before.node_count,
               before.number, text_of_term(before.term), std::get<3>(key), text_of_term(std::get<2>(key))));
  }
}

void ElectionRules::check_transferred(const Job& job, const Prepared& round, const Last& before) const {
  const auto lost = [&](const std::string& what) {
    simulation_.invariants().broken("a successor knows what the coordinator before knew",
                                    format("{}: {} since term {}", job.first, what, text_of_term(before.term)));
  };
  const TransferredState& then = before.transferred;
  const TransferredState& now = *round.transferred;
  if (now.rules != then.rules || now.check != then.check) lost("the rules have changed");
  if (now.first_size != then.first_size)
    lost(format("the first round had {} nodes, and now {}", then.first_size, now.first_size));
  // This coordinator has asked for no votes, or the one before has not, since no other node could be reached.
  if (round.before.empty() || !before.asks) return;
  if (now.restarts_used < then.restarts_used)
    lost(format("{} restarts became {}", then.restarts_used, now.restarts_used));
  if (now.losses < then.losses) lost(format("{} losses became {}", then.losses, now.losses));
  for (const TransferredState::Evicted& host : then.evicted) {
    if (std::ranges::find(now.evicted, host) == now.evicted.end())
      lost(format("{} is not excluded any more", host.name));
  }
  for (const TransferredState::Host& host : then.hosts) {
    if (host.until_ms <= simulation_.wall_ms()) continue;
    const auto known = std::ranges::find(now.hosts, host.name, &TransferredState::Host::name);
    // No coordinator quarantines a host for longer from now than it was quarantined, and clocks have gone at 1 % less.
    const Ms clocks_ms = simulation_.now_ms() / 50;
    if (known == now.hosts.end() || known->until_ms + clocks_ms < host.until_ms)
      lost(format("{} is not kept out any more", host.name));
  }
}

}  // namespace elastic::simulation
