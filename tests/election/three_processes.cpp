// Three processes elect a leader, lose it, and elect the next one: rendezvous/election without the rest of elastic-run.
// They stand in one program; a message is a call a millisecond later, and the clock is a number. Ends with 1 if two may
// lead at once.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>

#include "rendezvous/election/follower.h"
#include "rendezvous/election/leader.h"

using namespace elastic::election;
using namespace elastic::protocol;

namespace {

struct Process {
  const AgentId own;
  Follower follower{own};
  std::optional<Welcome> follows = {};  // empty: it looks for the leader
  std::int64_t heard_ms = 0;            // of that one
  Term term = 0;                        // the latest that it knows
  std::optional<Leader> leader = {};    // it leads, or is a candidate
  std::set<AgentId> members = {};       // who follows it
  bool has_begun = false, has_run = false, is_alive = true;

  void ask();
  void is_asked(Process& by, bool may_begin, Term known);
  void keep_alive();
  void renew_lease(Process& of);
  void lead();
  void begin_round();
};

constexpr LeaseTimes kTimes;
std::int64_t now_ms = 0;
std::map<AgentId, Process> processes;
std::multimap<std::int64_t, std::function<void()>> due;

void after(std::int64_t ms, Process& in, std::function<void()> act) {
  due.emplace(now_ms + ms, [&in, act = std::move(act)] {
    if (in.is_alive) act();
  });
}

void Process::ask() {
  if (follows) return;
  const Follower::Attempt attempt = follower.next_peer(now_ms);
  Process& to = processes.at(attempt.to ? attempt.to->agent : 1);  // discovery always names the first
  after(1, to, [this, &to, may_begin = !follower.probes()] { to.is_asked(*this, may_begin, term); });
  after(attempt.patience_ms.value_or(kTimes.renewal_ms()), *this,
        [this] { after(follower.ask_again_ms(false, now_ms).value_or(now_ms) - now_ms, *this, [this] { ask(); }); });
}

void Process::is_asked(Process& by, bool may_begin, Term known) {
  const bool is_first = own == 1 && term == 0;
  const auto free_at_ms = follower.is_searching() ? follower.free_at_ms(now_ms) : std::nullopt;
  if (!leader && !is_first && (!may_begin || !free_at_ms || *free_at_ms > now_ms)) return;
  if (!leader) {
    leader.emplace(kTimes, own, std::nullopt).follow(true, !is_first, now_ms);
    term = std::max(term, known) + 1;
    lead();
  }
  members.insert(by.own);
  after(1, by, [&by, welcome = Welcome{term, 1, kTimes.loss_timeout_ms, leader->granted_ms(), own}] {
    const Follower::Node node{.belongs_to = by.term == 0 ? 0U : 1U};
    if (by.follows || by.follower.welcomed(welcome, true, node, now_ms).why_not != nullptr) return;
    by.follows = welcome;
    by.term = welcome.term;
    by.heard_ms = now_ms;
    by.keep_alive();
  });
}

void Process::keep_alive() {
  if (now_ms > heard_ms + kTimes.vote_ms()) {
    follows.reset();
    follower.lost(kTimes, now_ms);
    return ask();
  }
  Process& to = processes.at(follows->host);
  after(1, to, [this, &to] { to.renew_lease(*this); });
  after(kTimes.renewal_ms(), *this, [this] { keep_alive(); });
}

void Process::renew_lease(Process& of) {
  if (!leader) return;
  leader->grant(now_ms);
  const auto grant = leader->grant_for(true);
  if (!grant) return;
  after(1, of, [this, &of, grant = *grant, since_ms = now_ms] {
    if (!of.follows || of.follows->host != own) return;
    of.heard_ms = now_ms;
    const auto ack = of.follower.lease_granted(*of.follows, grant, now_ms);
    if (!ack) return;
    after(1, *this, [this, &of, ack = *ack, since_ms] {
      if (leader) leader->acknowledges(of.own, ack.voter_state, since_ms, now_ms);
    });
  });
}

void Process::lead() {
  if (!leader->why_over(now_ms).empty()) return leader.reset();
  if (leader->count_votes(true, now_ms).asks) {
    for (const AgentId member : members) renew_lease(processes.at(member));
  }
  const auto alive = std::ranges::count_if(processes, [](const auto& entry) { return entry.second.is_alive; });
  if (!has_begun && leader->may_act() && std::cmp_equal(members.size(), alive)) begin_round();
  if (has_begun && !has_run && leader->run(now_ms)) {
    has_run = true;
    for (const AgentId member : members) {
      Process& to = processes.at(member);
      after(1, to, [&to, number = term] { to.follower.on_run_workers({.round = number, .store = {}}); });
    }
    std::printf("process %d leads %zu processes in term %u\n", static_cast<int>(own), members.size(), term);
  }
  after(10, *this, [this] { lead(); });
}

void Process::begin_round() {
  has_begun = true;
  std::vector<NextLeaderCandidate> nodes;
  for (const AgentId member : members) nodes.push_back({.node = {.agent = member, .addresses = "::1", .port = 1}});
  PrepareRound round{.round = term, .place = {.node_count = static_cast<int>(nodes.size())}, .membership = 1};
  const auto begun = leader->begin_round({term, term, round.membership, round.place.node_count, {}}, nodes);
  round.fence.term = term;
  round.before = begun.before;
  round.host_rank = begun.host_rank;
  round.next_leaders = begun.leaders;
  for (const AgentId member : members) {
    Process& to = processes.at(member);
    after(1, to, [this, &to, round] {
      if (!to.follows) return;
      (void)to.follower.on_prepare_round(round, *to.follows, now_ms);
      after(1, *this, [this, &to] {
        if (leader) leader->hears(to.own);
      });
    });
    ++round.place.node_rank;
  }
}

}  // namespace

int main() {
  for (AgentId own = 1; own <= 3; ++own) processes.try_emplace(own, own);
  for (auto& [own, process] : processes) after(0, process, [&process] { process.ask(); });
  Process& first = processes.at(1);
  const auto leads = [](const auto& entry) {
    return entry.second.leader && entry.second.leader->is_sole_leader(now_ms);
  };
  while (now_ms < 60'000 && !due.empty()) {
    now_ms = due.begin()->first;
    due.extract(due.begin()).mapped()();
    if (std::ranges::count_if(processes, leads) > 1) return 1;
    if (now_ms >= 10'000 && std::exchange(first.is_alive, false)) std::puts("process 1 is gone");
  }
  return first.has_run && std::ranges::count_if(processes, leads) == 1 ? 0 : 1;
}
