#include "tests/election/world.h"

#include <algorithm>

namespace elastic::election {

Coordinator::Attached* World::find(std::size_t index, std::size_t i, int session) {
  Coordinator& c = *coordinators_[index];
  if (c.is_dead || c.is_closed) return nullptr;
  const auto found = c.attached.find(i);
  if (found == c.attached.end() || found->second.session != session) return nullptr;
  found->second.heard_ms = ms(c.machine);
  return &found->second;
}

bool World::hears_of(std::size_t index, protocol::Term term) {
  if (term <= coordinators_[index]->id.term) return false;
  close(index);
  return true;
}

void World::close(std::size_t index) {
  note("term {} resigns", coordinators_[index]->id.term);
  Coordinator& c = *coordinators_[index];
  c.is_closed = true;
  if (!c.node) return;
  Node& node = nodes_[*c.node];
  node.voter.resigned(c.id, ms(c.machine));
  if (node.coordinator == index) node.coordinator.reset();
}

void World::join(std::size_t index, std::size_t i, int session, const VoterState& voter_state,
                 std::int64_t challenge_ms, std::optional<Round> runs) {
  Coordinator& c = *coordinators_[index];
  if (c.is_dead || c.is_closed) return;
  c.attached[i] = {session, ms(c.machine), std::move(runs)};
  for (const KnownRound& known : voter_state.rounds) c.highest = std::max(c.highest, known.round.number);
  if (c.candidate) {
    c.candidate->votes(agent(i), voter_state, challenge_ms, ms(c.machine));
    if (voter_state.witnessed_death) c.heard.insert(i);
  } else {
    c.lease->acknowledges(agent(i), challenge_ms);
    c.lease->joins(agent(i), voter_state.rounds);
  }
}

void World::keep_alive(std::size_t index, std::size_t i, int session, std::int64_t sent_ms, protocol::Term term) {
  Coordinator& c = *coordinators_[index];
  if (!find(index, i, session) || hears_of(index, term) || !c.acts(ms(c.machine))) return;
  send_lease_grant(index, i, session, sent_ms, c.lease->grant_ms(ms(c.machine)));
}

void World::send_lease_grant(std::size_t index, std::size_t i, int session, std::int64_t sent_ms,
                             std::int64_t granted_ms) {
  const Coordinator& c = *coordinators_[index];
  send(c.machine, i, [this, i, index, session, sent_ms, granted_ms, token_ms = ms(c.machine)] {
    lease_granted(i, index, session, sent_ms, granted_ms, token_ms);
  });
}

void World::lease_acked(std::size_t index, std::size_t i, int session, std::int64_t token_ms) {
  Coordinator& c = *coordinators_[index];
  if (!find(index, i, session)) return;
  if (c.candidate) {
    c.candidate->acknowledges(agent(i), token_ms);
  } else {
    c.lease->acknowledges(agent(i), token_ms);
  }
}

void World::drop(std::size_t index, std::size_t i) {
  Coordinator& c = *coordinators_[index];
  const auto found = c.attached.find(i);
  if (found == c.attached.end()) return;
  c.lease_until[i] = found->second.heard_ms + kTimes.over_ms();
  c.attached.erase(found);
}

void World::tick_coordinator(std::size_t index) {
  Coordinator& c = *coordinators_[index];
  if (c.is_dead || c.is_closed) return;
  after(c.candidate && is_eager_ ? random_.range(2 * kMs, 10 * kMs) : random_.range(20 * kMs, 100 * kMs), c.machine,
        [this, index] { tick_coordinator(index); });
  const std::int64_t now_ms = ms(c.machine);
  for (auto each = c.attached.begin(); each != c.attached.end();) {
    const auto [i, attached] = *each++;
    if (now_ms - attached.heard_ms >= kTimes.loss_timeout_ms && c.node != i) drop(index, i);
  }
  if (c.candidate) return stand(index);
  if (!c.acts(now_ms)) {
    if (now_ms - c.acted_ms > 12'000) close(index);
    return;
  }
  c.acted_ms = now_ms;
  if (random_.chance(1) && random_.chance(hand_overs_)) return hand_over(index);
  go_on(index);
}

void World::stand(std::size_t index) {
  Coordinator& c = *coordinators_[index];
  const std::int64_t now_ms = ms(c.machine);
  if (c.candidate->has_quorum(now_ms)) {
    for (const auto& [i, attached] : c.attached) send_lease_grant(index, i, attached.session, 0, 0);
  }
  std::optional<Candidate::Elected> elected = c.candidate->elected(now_ms);
  if (!elected) {
    if (now_ms - c.born_ms > stands_for_ms_) close(index);
    return;
  }
  c.lease.emplace(std::move(elected->lease));
  c.others_until_ms = elected->others_may_run_until_ms;
  c.candidate.reset();
  c.acted_ms = now_ms;
  ++seen_.elections;
  note("term {} is elected, on round {}.{} of {}", c.id.term, c.lease->before().back().term,
       c.lease->before().back().number, c.lease->before().size());
  if (!c.heard.empty()) ++seen_.by_witnessed_death;
  c.heard.clear();
  // Workers of other rounds than the last one are stopped; at times all are.
  c.phase = Coordinator::Phase::kStopping;
  const std::vector<Round> before = c.lease->before();
  const auto runs_last = [&](const auto& each) { return each.second.runs == before.back(); };
  if (before.size() == 1 && std::ranges::all_of(c.attached, runs_last) && random_.chance(70)) {
    c.phase = Coordinator::Phase::kWatching;
    c.members = members_.at(before.back().membership);
  }
}

void World::hand_over(std::size_t index) {
  Coordinator& c = *coordinators_[index];
  ++seen_.resignations;
  for (const auto& [i, attached] : c.attached) {
    send(c.machine, i, [this, i, index] {
      Node& node = nodes_[i];
      if (!node.is_alive) return;
      node.voter.resigned(coordinators_[index]->id, ms(i));
      if (node.coordinator == index) node.coordinator.reset();
    });
  }
  close(index);
}

void World::go_on(std::size_t index) {
  using Phase = Coordinator::Phase;
  Coordinator& c = *coordinators_[index];
  const std::int64_t now_ms = ms(c.machine);
  const auto is_attached = [&](std::size_t i) { return c.attached.contains(i); };
  const bool are_idle = std::ranges::none_of(c.attached, [](const auto& each) { return each.second.runs.has_value(); });
  const bool are_others_gone = now_ms >= c.others_until_ms && std::ranges::all_of(c.lease_until, [&](const auto& each) {
                                 return is_attached(each.first) || now_ms >= each.second;
                               });
  switch (c.phase) {
    case Phase::kWatching:
      if (c.members.empty() && c.attached.size() < first_size_) return;
      if (!c.members.empty() && std::ranges::all_of(c.members, is_attached) && !random_.chance(1)) return;
      c.phase = Phase::kStopping;
      [[fallthrough]];
    case Phase::kStopping:
      if (!are_idle) {
        for (const auto& [i, attached] : c.attached) {
          if (!attached.runs) continue;
          send(c.machine, i, [this, i, index, session = attached.session, round = *attached.runs] {
            told_to_stop(i, index, session, round);
          });
        }
        return;
      }
      return prepare(index);
    case Phase::kPrepared:
      if (now_ms - c.phase_ms > 1'500 || !std::ranges::all_of(c.members, is_attached)) {
        c.lease->abandon();
        c.phase = Phase::kStopping;
        return;
      }
      if (now_ms - c.phase_ms < c.opens_ms || !are_idle || !are_others_gone || !c.lease->may_run(now_ms)) return;
      if (!std::ranges::all_of(c.members, [&](std::size_t i) { return c.heard.contains(i); })) return;
      c.lease->run(now_ms);
      c.phase = Phase::kWatching;
      ++seen_.rounds;
      note("term {} runs round {}", c.id.term, c.prepared.number);
      for (const std::size_t i : c.members) {
        c.attached[i].runs = c.prepared;
        send(c.machine, i, [this, i, index, session = c.attached[i].session, round = c.prepared] {
          told_to_run(i, index, session, round);
        });
      }
      return;
  }
}

void World::prepare(std::size_t index) {
  Coordinator& c = *coordinators_[index];
  c.members.clear();
  for (const auto& [i, attached] : c.attached) {
    if (random_.chance(taken_)) c.members.push_back(i);
  }
  if (c.members.empty()) return;
  c.prepared = {.term = c.id.term,
                .number = ++c.highest,
                .membership = ++digest_,
                .node_count = static_cast<int>(c.members.size())};
  members_[digest_] = c.members;
  std::vector<AgentId> agents;
  for (const std::size_t i : c.members) {
    if (c.node == i) c.prepared.tie_breaker = static_cast<int>(agents.size());
    agents.push_back(agent(i));
  }
  c.lease->prepare(c.prepared, agents);
  note("term {} prepares round {} of {}", c.id.term, c.prepared.number, names(c.members));
  c.phase = Coordinator::Phase::kPrepared;
  c.phase_ms = ms(c.machine);
  c.opens_ms = random_.chance(70) ? 0 : random_.range(0, 1'400);
  c.heard.clear();
  const std::vector<Round> before = c.lease->before();
  for (const auto& [i, attached] : c.attached) {
    const auto found = std::ranges::find(c.members, i);
    std::optional<int> rank;
    if (found != c.members.end()) rank = static_cast<int>(found - c.members.begin());
    send(c.machine, i, [this, i, index, session = attached.session, round = c.prepared, rank, before] {
      told_of_round(i, index, session, round, rank, before);
    });
  }
}

}  // namespace elastic::election
