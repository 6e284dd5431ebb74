#include "tests/election/world.h"

#include <algorithm>

namespace elastic::election {

World::World(std::uint64_t seed, Trace trace) : random_(seed), kind_(seed, 1), trace_(trace) {
  const std::size_t first = static_cast<std::size_t>(random_.number(2, 5));
  started_ = first + static_cast<std::size_t>(random_.number(0, 2));
  nodes_.resize(started_ + kReplacements);
  clocks_.resize(nodes_.size() + 1);  // the last machine has no node
  for (Clock& clock : clocks_) {
    const std::int64_t drift = random_.chance(50) ? random_.range(-4'950, 4'950) : random_.chance(50) ? -4'950 : 4'950;
    clock = {random_.range(0, 1'000'000), 1'000'000 + drift};
  }
  paused_until_.resize(clocks_.size());
  cut_.assign(clocks_.size(), std::vector<bool>(clocks_.size(), false));
  first_size_ = first;
  faults_ = random_.number(1, 8);
  is_eager_ = random_.chance(30);
  hand_overs_ = random_.chance(30) ? 30 : random_.number(0, 3);
  if (kind_.chance(50)) patience_ms_ = kind_.range(kTimes.lease_ms(), kTimes.loss_timeout_ms);
  if (kind_.chance(30)) other_terms_ = kind_.number(0, 1);
  if (kind_.chance(30)) resets_ = kind_.number(1, 60);
  if (kind_.chance(30)) stands_for_ms_ = kind_.range(5'000, 25'000);
  if (kind_.chance(30)) taken_ = kind_.number(40, 80);
  note(
      "{} of {} nodes begin; a fault each {} s at most; eager: {}; hand-overs: {}; patience {} ms; terms: {}; resets: "
      "{}",
      first_size_, started_, faults_, is_eager_, hand_overs_, patience_ms_, other_terms_ + 1, resets_);
  Coordinator& begins = open(random_.chance(80) ? 0 : nodes_.size(), 1);
  begins.lease.emplace(kTimes, own(begins));
  if (begins.node) begins.lease->acknowledges(agent(*begins.node), ms(begins.machine));
  begins.candidate.reset();
  for (std::size_t i = 0; i < started_; ++i) {
    after(i < first ? 0 : random_.range(0, 60 * kSecond), i, [this, i] { tick_node(i); });
  }
  later(random_.range(0, 8 * kSecond), [this] { fault(); });
}

Seen World::run() {
  while (!events_.empty() && seen_.broken.empty() && now_ < std::min(kRunFor, acted_ + kGiveUpAfter)) {
    Event event = events_.top();
    events_.pop();
    now_ = event.at;
    event.action();
    check();
  }
  seen_.total_ms = now_ / kMs;
  return seen_;
}

void World::later(std::int64_t delay, std::function<void()> action) {
  events_.push({now_ + delay, ++count_, std::move(action)});
}

void World::after(std::int64_t delay, std::size_t machine, std::function<void()> action) {
  later(delay, [this, machine, action = std::move(action)] {
    if (paused_until_[machine] > now_) return after(paused_until_[machine] - now_, machine, action);
    action();
  });
}

void World::send(std::size_t from, std::size_t to, std::function<void()> action) {
  std::int64_t delay = from == to ? 20 : random_.range(100, random_.chance(10) ? 900 * kMs : is_eager_ ? kMs : 5 * kMs);
  if (from != to && cut_[from][to]) {
    if (random_.chance(70)) return;
    delay += random_.range(0, 8 * kSecond);
  }
  std::int64_t& last = last_[{from, to}];
  last = std::max(last + 1, now_ + delay);  // in the order in which they were sent
  after(last - now_, to, [this, from, to, action = std::move(action)] {
    if (from != to && cut_[from][to] && random_.chance(70)) return;
    action();
  });
}

Coordinator& World::open(std::size_t machine, protocol::Term term) {
  const std::size_t index = coordinators_.size();
  Coordinator& c = *coordinators_.emplace_back(std::make_unique<Coordinator>());
  c.machine = machine;
  if (machine < nodes_.size()) c.node = machine;
  // A coordinator on none of the nodes is known by its term alone.
  const auto is_taken = [&](const auto& other) { return !c.node && other->id == CoordinatorId{term, 0}; };
  while (std::ranges::any_of(coordinators_, is_taken)) term += 8;
  c.id = {term, c.node ? agent(machine) : 0};
  c.born_ms = c.acted_ms = ms(machine);
  c.candidate.emplace(kTimes, own(c));
  note("term {} stands on machine {}", term, machine);
  if (c.node) {
    Node& node = nodes_[machine];
    const VoterState voter_state = voter_state_of(machine);
    node.voter.vote_for_own(c.id, ms(machine));
    c.candidate->votes(agent(machine), voter_state, ms(machine), ms(machine));
    attach(machine, index);
    join(index, machine, node.session, voter_state, ms(machine), node.runs);
  }
  after(0, machine, [this, index] { tick_coordinator(index); });
  return c;
}

VoterState World::voter_state_of(std::size_t i) const {
  const Node& node = nodes_[i];
  return {node.known.rounds(), node.voter.witnessed_death(), node.voter.others_may_run_for_ms(ms(i))};
}

void World::check() {
  const Coordinator* acting = nullptr;
  for (const auto& c : coordinators_) {
    if (!c->acts(ms(c->machine))) continue;
    if (acting) seen_.broken = format("coordinators of terms {} and {} have authority", acting->id.term, c->id.term);
    acting = c.get();
  }
  if (acting) seen_.acting_ms += (now_ - checked_) / kMs;
  if (acting) acted_ = now_;
  checked_ = now_ / kMs * kMs;
  std::set<std::uint64_t> alive;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (node.runs && ms(i) < node.lease_until_ms + kKillMs) alive.insert(node.runs->membership);
    if (node.runs) lasts_[i] = node.runs->membership;
    if (!node.runs && ms(i) < node.gone_ms) alive.insert(lasts_[i]);
    if (node.is_alive && ms(i) < node.lease_until_ms) check_lease(i);
  }
  if (alive.size() > 1) seen_.broken = "workers of two rounds live";
  if (!seen_.broken.empty()) seen_.broken += format(" at {} ms", now_ / kMs);
}

void World::check_lease(std::size_t i) {
  const Coordinator& c = *coordinators_[nodes_[i].lender];
  if (c.is_proven || c.is_closed || !c.lease) return;
  LeaderLease held = *c.lease;
  held.abandon();  // a prepared round may keep this coordinator from acting, but lets no other one act
  // Both count whole milliseconds.
  if (!held.authority().holds(ms(c.machine) - 1)) {
    seen_.broken = format("node {} has a lease of term {}, which has no authority", i, c.id.term);
  }
}

Seen run_model(std::uint64_t seed, Trace trace) { return World(seed, trace).run(); }

}  // namespace elastic::election
