#include "tests/simulation/hangs.h"

#include <algorithm>
#include <utility>

#include "src/base/text.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

using namespace protocol;

namespace {

// As the product looks at its workers.
constexpr Ms kLookMs = 2'500;
// For so long a round trains on after a hang, and longer for each node that has to hear that it is over.
constexpr Ms kTrainsOnMs = 3'000;
// From the end of a hang until all nodes must have heard of that.
constexpr Ms kOverMs = 2'500;
// A verdict that takes longer than this is not waited for.
constexpr Ms kLongestWaitMs = 160'000;
constexpr Ms kShortcutMs = 10'000;
// Two samples and the collection of evidence.
constexpr Ms kJudgeMs = 26'000;
constexpr int kAborted = 6;

}  // namespace

Hangs::Hangs(Simulation& simulation, Random random)
    : simulation_(simulation), random_(random), invariants_(simulation) {}

bool Hangs::are_on() const { return simulation_.setup().hangs.has_value(); }

const World& Hangs::world(std::size_t index) const { return simulation_.workers().world(index); }

void Hangs::worker_started(WorkerId id) {
  if (!are_on()) return;
  const Worker& worker = simulation_.workers().at(id);
  const auto [known, is_new] = worlds_.try_emplace(worker.node, worker.world);
  if (is_new || std::exchange(known->second, worker.world) != worker.world) told_[worker.node].reset();
  if (states_.size() <= worker.world) states_.resize(worker.world + 1);
  std::vector<int>& nodes = states_[worker.world].nodes;
  if (std::ranges::find(nodes, worker.node) == nodes.end()) nodes.push_back(worker.node);
}

std::optional<std::size_t> Hangs::world_of(const Node& node) const {
  const auto found = worlds_.find(node.index());
  return found == worlds_.end() ? std::nullopt : std::optional(found->second);
}

bool Hangs::is_told(const Node& node, std::size_t index) const {
  const auto found = told_.find(node.index());
  return found != told_.end() && found->second == index;
}

const Hang* Hangs::hang_of(std::size_t index) const {
  if (index >= states_.size() || !states_[index].hang) return nullptr;
  return &*states_[index].hang;
}

bool Hangs::is_whole(std::size_t index) const {
  const World& known = world(index);
  return known.started == known.world_size && known.unaware == known.world_size;
}

bool Hangs::is_hanging(std::size_t index) const {
  const Hang* const hang = hang_of(index);
  return hang != nullptr && hang->is_now() && is_whole(index);
}

bool Hangs::goes_on(std::size_t index) const {
  if (index >= states_.size()) return false;
  return is_hanging(index) || simulation_.now_ms() < states_[index].trains_until_ms;
}

// Each rank talks with the next one.
bool Hangs::moves(std::size_t index) const {
  if (is_hanging(index)) return false;
  for (const WorkerId id : world(index).workers) {
    if (simulation_.workers().at(id).stopped > 0) return false;
  }
  const std::vector<int>& nodes = states_[index].nodes;
  for (std::size_t i = 0; i < nodes.size() && nodes.size() > 1; ++i) {
    const auto host = [&](std::size_t place) {
      return simulation_.nodes()[static_cast<std::size_t>(nodes[place % nodes.size()])]->host();
    };
    if (!simulation_.network().reaches(host(i), host(i + 1))) return false;
  }
  return true;
}

// --- Progress. -------------------------------------------------------------------------------------

void Hangs::world_is_there(std::size_t index) {
  // The last worker is not known yet. The node of a dead one may have a later world.
  for (const WorkerId id : world(index).workers) {
    if (simulation_.workers().at(id).alive) worker_started(id);
  }
  std::vector<int>& nodes = states_[index].nodes;
  const auto first_rank = [&](int node) {
    for (const WorkerId id : world(index).workers) {
      if (simulation_.workers().at(id).node == node) return simulation_.workers().at(id).rank;
    }
    return 0;
  };
  std::ranges::sort(nodes, {}, first_rank);
  plan_hang(index);
  simulation_.timeline().after(simulation_.setup().hangs->beat_ms, [this, index] { beat(index); });
}

void Hangs::beat(std::size_t index) {
  if (!is_whole(index)) return;
  State& state = states_[index];
  const HangSetup& setup = *simulation_.setup().hangs;
  simulation_.timeline().after(setup.beat_ms, [this, index] { beat(index); });
  if (!moves(index)) {
    state.stood_ms = simulation_.now_ms();
    return;
  }
  ++state.step;
  for (const int place : setup.all_speak ? std::vector<int>(state.nodes) : std::vector<int>{state.nodes.front()}) {
    Node& node = *simulation_.nodes()[static_cast<std::size_t>(place)];
    const ProgressOfRank made{.rank = node.first_rank(),
                              .step = state.step,
                              .source = progress::Source::kMegatron,
                              .phase = progress::Phase::kTrain};
    node.sees(agent::ProgressMade{{world(index).round, made, made, 1}});
  }
}

// --- Hangs. ----------------------------------------------------------------------------------------

void Hangs::plan_hang(std::size_t index) {
  const HangSetup& setup = *simulation_.setup().hangs;
  if (!random_.chance(setup.percent)) return;
  const World& known = world(index);
  const int last_kind = random_.chance(60) ? static_cast<int>(HangKind::kNotAtInit) : kHangKinds - 1;
  const auto kind = static_cast<HangKind>(random_.number(0, last_kind));
  Hang hang{.kind = setup.kind.value_or(kind),
            .rank = random_.number(0, known.world_size - 1),
            .world_size = known.world_size,
            .until_told = setup.all_last || random_.chance(75)};
  for (const WorkerId id : known.workers) {
    if (simulation_.workers().at(id).rank == hang.rank) hang.node = simulation_.workers().at(id).node;
  }
  hang.address = simulation_.nodes()[static_cast<std::size_t>(hang.node)]->setup().address;
  const Ms first_ms = 2 * setup.beat_ms;
  const Ms after_ms = random_.range(first_ms, std::max(first_ms, known.takes_ms * 8 / 10));
  std::optional<Ms> lasts_ms;
  if (!hang.until_told) lasts_ms = random_.range(0, 40'000);
  if (hang.kind == HangKind::kNotAtInit) return begin(index, hang, lasts_ms);
  simulation_.timeline().after(after_ms, [this, index, hang, lasts_ms] { begin(index, hang, lasts_ms); });
}

void Hangs::begin(std::size_t index, Hang hang, std::optional<Ms> lasts_ms) {
  if (simulation_.is_calm() || !is_whole(index)) return;
  hang.began_ms = simulation_.now_ms();
  State& state = states_[index];
  state.hang = hang;
  state.stood_ms = hang.began_ms;
  state.was_told = false;
  state.taken_for_step_ms.reset();
  ++counts_.begun();
  simulation_.trace().add(2000 + static_cast<std::uint64_t>(hang.kind));
  if (simulation_.trace().is_read())
    simulation_.line(
        format("round {} hangs: {}, rank {} on node {}", world(index).round, name(hang.kind), hang.rank, hang.node));
  show_signs(index);
  if (!lasts_ms) return;
  simulation_.timeline().after(*lasts_ms, [this, index] {
    if (!states_[index].hang->until_told) end(index);
  });
}

// What a node shows without being asked, for as long as it holds.
void Hangs::show_signs(std::size_t index) {
  const Hang& hang = *states_[index].hang;
  HangFacts facts;
  facts.is_stopped = hang.kind == HangKind::kStopped;
  facts.waits_for_disk = hang.kind == HangKind::kDisk;
  facts.misses_init_key = hang.kind == HangKind::kNotAtInit && hang.world_size > 1;
  if (facts == HangFacts{}) return;
  const int place = facts.misses_init_key ? states_[index].nodes.front() : hang.node;
  simulation_.timeline().after(kLookMs, [this, index, place, facts] {
    Node& node = *simulation_.nodes()[static_cast<std::size_t>(place)];
    if (!is_whole(index) || world_of(node) != index) return;
    const bool holds = is_hanging(index);
    node.sees(agent::SignsSeen{world(index).round, holds ? facts : HangFacts{}, false});
    if (holds) show_signs(index);
  });
}

void Hangs::agent_acts(Node& node, const agent::Effect& effect) {
  if (!are_on()) return;
  const auto* told = std::get_if<agent::TellHang>(&effect);
  if (std::holds_alternative<agent::TellHangOver>(effect)) told_[node.index()].reset();
  if (told == nullptr || told->told.what != HangTold::What::kVerdict) return;
  const auto index = world_of(node);
  if (!index) return;
  told_[node.index()] = *index;
  was_told(*index);
}

// A user who reads it lets the round go on after a while, or ends the rank.
void Hangs::was_told(std::size_t index) {
  if (!is_hanging(index)) return;
  State& state = states_[index];
  state.was_told = true;
  if (!state.hang->until_told || std::exchange(state.hang->is_ending, true)) return;
  const bool kills = !simulation_.is_calm() && random_.chance(25);
  simulation_.timeline().after(random_.range(1'500, 5'000), [this, index, kills] {
    if (!is_hanging(index)) return;
    const Hang& hang = *states_[index].hang;
    if (!kills) return end(index);
    for (const WorkerId id : world(index).workers) {
      if (simulation_.workers().at(id).rank == hang.rank) simulation_.workers().fail(id, {.signal = kAborted});
    }
    end(index);  // its host is frozen
  });
}

void Hangs::end(std::size_t index) {
  if (!is_hanging(index)) return;
  State& state = states_[index];
  const Ms now_ms = simulation_.now_ms();
  state.hang->ended_ms = state.stood_ms = now_ms;
  state.trains_until_ms = now_ms + kTrainsOnMs + 4 * simulation_.setup().hangs->beat_ms;
  simulation_.trace().add(3000);
  if (simulation_.trace().is_read()) simulation_.line(format("round {} hangs no more", world(index).round));
  if (!settled_ms_ || now_ms < *settled_ms_) return;
  simulation_.timeline().after(kOverMs + 2 * simulation_.setup().hangs->beat_ms, [this, index] {
    if (!is_whole(index) || !moves(index)) return;
    ++counts_.over();
    for (const int place : states_[index].nodes) {
      const Node& node = *simulation_.nodes()[static_cast<std::size_t>(place)];
      if (is_told(node, index) && world_of(node) == index)
        simulation_.invariants().broken("a hang that is over is told", format("node {} has not heard it", place));
    }
  });
}

// --- In time. --------------------------------------------------------------------------------------

void Hangs::calm() {
  if (!are_on()) return;
  const Ms bound_ms = settling_bound_ms(simulation_.setup());
  settled_ms_ = simulation_.now_ms() + bound_ms;
  for (std::size_t index = 0; index < states_.size(); ++index) {
    if (!is_hanging(index)) continue;
    states_[index].hang->until_told = true;
    if (!states_[index].was_told) ++counts_.due();
    // It may have been told already, and be about to end.
    if (states_[index].was_told) was_told(index);
    simulation_.timeline().after(bound_ms, [this, index] { look_when_settled(index); });
  }
}

// The coordinator that is left has the round, or the round is about to end.
void Hangs::look_when_settled(std::size_t index) {
  if (!is_hanging(index) || states_[index].was_told) return;
  const World& known = world(index);
  Server* const server = simulation_.server_of(known.job);
  const coordinator::Coordinator* const coordinator = server != nullptr ? server->find(known.job) : nullptr;
  const bool has_it = coordinator != nullptr && coordinator->state() == coordinator::Coordinator::State::kRunning &&
                      coordinator->incarnation() == known.incarnation && coordinator->round() == known.round;
  if (!has_it) return end(index);
  const Hang& hang = *states_[index].hang;
  const JobRules& rules = simulation_.nodes()[static_cast<std::size_t>(hang.node)]->setup().rules;
  std::optional<Ms> limit_ms;
  if (const auto limit = coordinator->hang().status(server->clock_ms()).limit) limit_ms = limit->limit_ms;
  const auto at_most = [&](Ms other_ms) { limit_ms = std::min(limit_ms.value_or(other_ms), other_ms); };
  if (hang.kind == HangKind::kStopped || hang.kind == HangKind::kDisk) at_most(kShortcutMs);
  if (hang.kind == HangKind::kNotAtInit && hang.world_size > 1) {
    if (const auto known_ms = rules.hang_timeout_ms ? rules.hang_timeout_ms : rules.hang_first_timeout_ms)
      at_most(*known_ms);
  }
  // Without a sign of progress in the round, and without a given time, the round is not watched.
  if (!limit_ms) return end(index);
  must_be_told(index, *limit_ms, simulation_.now_ms());
}

void Hangs::was_taken_for_a_step(std::size_t index) { states_[index].taken_for_step_ms = simulation_.now_ms(); }

// If the coordinator has rightly taken the hang for a long step meanwhile, the limit passes again from then on.
void Hangs::must_be_told(std::size_t index, Ms limit_ms, Ms since_ms) {
  const bool is_storage = states_[index].hang->kind == HangKind::kStorage;  // that is told after four times the limit
  const Ms wait_ms = is_storage ? 5 * limit_ms + 2 * kJudgeMs : limit_ms + kLookMs + kJudgeMs;
  if (since_ms + wait_ms > *settled_ms_ + kLongestWaitMs) return end(index);
  const Ms due_ms = since_ms + wait_ms * 102 / 100 + 1'000;
  simulation_.timeline().after(due_ms - simulation_.now_ms(), [this, index, limit_ms, since_ms] {
    if (!is_hanging(index) || states_[index].was_told) return;
    const Ms again_ms = states_[index].taken_for_step_ms.value_or(since_ms);
    if (again_ms > since_ms) return must_be_told(index, limit_ms, again_ms);
    simulation_.invariants().broken(
        "a hang is told in time",
        format("round {}: {} since {} ms, rank {}; the limit is {} ms", world(index).round,
               name(states_[index].hang->kind), states_[index].hang->began_ms, states_[index].hang->rank, limit_ms));
  });
}

// --- Evidence. -------------------------------------------------------------------------------------

Hangs::Reading Hangs::plan_reading() {
  const HangSetup& setup = *simulation_.setup().hangs;
  const Ms reads_ms = random_.range(1, 3'000);
  if (random_.chance(setup.never_percent)) return {reads_ms, {}};
  if (random_.chance(setup.late_percent)) return {reads_ms, reads_ms + random_.range(3'000, 30'000)};
  return {reads_ms, reads_ms + random_.range(0, 500)};
}

hang::NodeFacts Hangs::read(const Node& node, const CollectEvidence& order) {
  const Reader reader{.first_rank = node.first_rank(), .ranks = node.setup().workers};
  const auto index = world_of(node);
  const bool hangs = index && is_hanging(*index);
  hang::NodeFacts facts;
  if (hangs) {
    facts = facts_of(*states_[*index].hang, reader, simulation_.now_ms());
  } else if (index && is_whole(*index) && moves(*index)) {
    facts = facts_of_training(reader, random_);
  } else {
    facts = facts_of_waiting(reader);
  }
  const bool is_whole = !random_.chance(simulation_.setup().hangs->partial_percent);
  if (!is_whole) lose_part(facts, random_);
  invariants_.has_read(node, order, hangs, is_whole);
  return facts;
}

}  // namespace elastic::simulation
