#include "tests/election/world.h"

#include <algorithm>

namespace elastic::election {

void World::attach(std::size_t i, std::size_t c) {
  Node& node = nodes_[i];
  node.coordinator = c;
  ++node.session;
  node.heard_ms = node.keep_alive_at_ms = ms(i);
}

void World::judge_lease(std::size_t i) {
  Node& node = nodes_[i];
  if (!node.runs || ms(i) < node.lease_until_ms) return;
  node.runs.reset();
  node.gone_ms = node.lease_until_ms + kKillMs;
  note("node {} kills its workers", i);
}

void World::tick_node(std::size_t i) {
  Node& node = nodes_[i];
  if (!node.is_alive) return;
  const bool is_busy = is_eager_ && !node.coordinator;
  after(is_busy ? random_.range(2 * kMs, 10 * kMs) : random_.range(20 * kMs, 120 * kMs), i,
        [this, i] { tick_node(i); });
  judge_lease(i);
  const std::int64_t now_ms = ms(i);
  if (node.coordinator) {
    const std::size_t c = *node.coordinator;
    if (now_ms - node.heard_ms >= patience_ms_ && coordinators_[c]->node != i) {
      node.coordinator.reset();
    } else if (now_ms >= node.keep_alive_at_ms) {
      node.keep_alive_at_ms = now_ms + kTimes.renewal_ms();
      send(i, coordinators_[c]->machine, [this, c, i, session = node.session, now_ms, term = node.voter.term()] {
        keep_alive(c, i, session, now_ms, term);
      });
    }
    return;
  }
  if (now_ms < node.dial_at_ms || now_ms < node.gone_ms) return;
  node.dial_at_ms = now_ms + (is_eager_ ? random_.range(2, 40) : random_.range(50, 400));
  if (node.runs && random_.chance(50)) return;
  // Mostly the latest coordinator that is open; at times another one, or the node becomes a candidate itself.
  std::optional<std::size_t> target;
  for (std::size_t c = coordinators_.size(); c-- > 0;) {
    if (coordinators_[c]->is_closed) continue;
    if (!target || random_.chance(30)) target = c;
    if (random_.chance(60)) break;
  }
  const bool stands =
      node.voter.is_released(now_ms) && !node.known.rounds().empty() && random_.chance(is_eager_ ? 2 : 12);
  if (stands) {
    const protocol::Term term = next_term(std::max(node.voter.term(), node.voter.coordinator().term));
    open(i, term);
  } else if (target) {
    dial(i, *target);
  }
}

protocol::Term World::next_term(protocol::Term known) {
  return ((known >> 3) + 1) << 3 | static_cast<protocol::Term>(random_.number(0, 7) & other_terms_);
}

void World::dial(std::size_t i, std::size_t index) {
  const Coordinator& c = *coordinators_[index];
  if (c.is_dead) {
    if (c.is_proven && reaches(i, c.machine)) died_for(i, index);
    return;
  }
  const int dials = ++nodes_[i].dials;
  send(i, c.machine, [this, i, index, dials, term = nodes_[i].voter.term()] {
    const Coordinator& there = *coordinators_[index];
    if (there.is_dead || there.is_closed || hears_of(index, term)) return;
    send(there.machine, i,
         [this, i, index, dials, challenge_ms = ms(there.machine)] { challenged(i, index, dials, challenge_ms); });
  });
}

void World::challenged(std::size_t i, std::size_t index, int dials, std::int64_t challenge_ms) {
  Node& node = nodes_[i];
  const Coordinator& c = *coordinators_[index];
  judge_lease(i);
  if (!node.is_alive || node.coordinator || dials != node.dials || !node.voter.may_vote(c.id, ms(i))) return;
  if (ms(i) < node.gone_ms) return;
  const VoterState voter_state = voter_state_of(i);
  node.voter.vote(c.id, ms(i));
  note("node {} votes for term {}", i, c.id.term);
  attach(i, index);
  send(i, c.machine, [this, index, i, session = node.session, voter_state, challenge_ms, runs = node.runs] {
    join(index, i, session, voter_state, challenge_ms, runs);
  });
  if (c.node == i || resets_ == 0 || !kind_.chance(resets_)) return;
  after(kind_.range(0, 20 * kMs), i, [this, i, session = node.session] {
    if (nodes_[i].session == session) nodes_[i].coordinator.reset();
  });
}

void World::lease_granted(std::size_t i, std::size_t index, int session, std::int64_t sent_ms, std::int64_t granted_ms,
                          std::int64_t token_ms) {
  Node& node = nodes_[i];
  judge_lease(i);
  if (!node.is_alive || node.coordinator != index || node.session != session) return;
  node.heard_ms = ms(i);
  if (!node.voter.lease_granted(coordinators_[index]->id, ms(i))) return;
  if (granted_ms > 0) {
    node.lease_until_ms = std::max(node.lease_until_ms, sent_ms + std::min(granted_ms, kTimes.lease_ms()));
    node.lender = index;
  }
  send(i, coordinators_[index]->machine,
       [this, index, i, session, token_ms] { lease_acked(index, i, session, token_ms); });
}

void World::told_to_stop(std::size_t i, std::size_t index, int session, const Round& round) {
  Node& node = nodes_[i];
  if (!node.is_alive || node.coordinator != index || node.session != session) return;
  after(random_.range(0, 300 * kMs), i, [this, i, index, session, round] {
    judge_lease(i);
    Node& stopped = nodes_[i];
    if (!stopped.is_alive || stopped.coordinator != index || stopped.session != session) return;
    if (stopped.runs == round) stopped.runs.reset();
    if (ms(i) < stopped.gone_ms) return told_to_stop(i, index, session, round);
    send(i, coordinators_[index]->machine, [this, index, i, session, round] {
      Coordinator::Attached* attached = find(index, i, session);
      if (attached && attached->runs == round) attached->runs.reset();
    });
  });
}

void World::told_of_round(std::size_t i, std::size_t index, int session, const Round& round, std::optional<int> rank,
                          const std::vector<Round>& before) {
  Node& node = nodes_[i];
  if (!node.is_alive || node.coordinator != index || node.session != session) return;
  node.known.hears(round, rank, before);
  send(i, coordinators_[index]->machine, [this, index, i, session, round] {
    Coordinator& c = *coordinators_[index];
    if (!find(index, i, session) || c.phase != Coordinator::Phase::kPrepared || c.prepared != round) return;
    c.lease->hears(agent(i));
    c.heard.insert(i);
  });
}

void World::told_to_run(std::size_t i, std::size_t index, int session, const Round& round) {
  Node& node = nodes_[i];
  judge_lease(i);
  if (!node.is_alive || node.coordinator != index || node.session != session) return;
  if (node.lender != index || ms(i) >= node.lease_until_ms || !node.known.runs(round)) return;
  node.runs = round;
  note("node {} runs round {}.{}, lease for {} ms", i, round.term, round.number, node.lease_until_ms - ms(i));
}

void World::died_for(std::size_t i, std::size_t index) {
  Node& node = nodes_[i];
  judge_lease(i);
  if (!node.is_alive) return;
  const Coordinator& c = *coordinators_[index];
  Voter::Circumstances at;
  at.holds_lease = node.lender == index && ms(i) < node.lease_until_ms;
  at.runs_workers = node.runs && node.known.rounds().back().round == *node.runs;
  if (!node.known.rounds().empty()) {
    at.round = node.known.rounds().back().round;
    const auto& members = members_.at(at.round.membership);
    const auto found = c.node ? std::ranges::find(members, *c.node) : members.end();
    if (found != members.end()) at.rank = static_cast<int>(found - members.begin());
  }
  node.voter.died(c.id, at, ms(i));
  note("node {} knows that term {} is dead{}", i, c.id.term,
       node.voter.witnessed_death() ? ", and has a certificate" : "");
  if (node.coordinator == index) node.coordinator.reset();
}

}  // namespace elastic::election
