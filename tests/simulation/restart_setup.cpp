// What is drawn for the seeds whose jobs have --hang=restart: the jobs themselves, and faults that strike around a
// verdict.
#include <algorithm>
#include <iterator>

#include "tests/simulation/faults.h"
#include "tests/simulation/setup.h"

namespace elastic::simulation {

using protocol::FrameType;

namespace {

// Others stand by, so that nodes can be replaced; and fewer nodes than there are may be enough.
void leave_some_out(protocol::JobTerms& terms, Random& random) {
  const int unit = terms.node_unit;
  const int units = terms.max_nodes / unit;
  if (random.chance(50)) terms.max_nodes = unit * std::max(1, units - random.number(1, 2));
  const int most = terms.max_nodes / unit * unit;
  if (random.chance(50)) terms.min_nodes = 1;
  terms.min_nodes = std::min(terms.min_nodes, most);
}

}  // namespace

void let_hangs_restart(Setup& setup, Random random) {
  HangSetup& hangs = setup.hangs.emplace();
  hangs.restarts = true;
  hangs.beat_ms = random.range(150, 600);
  hangs.all_speak = random.chance(40);
  hangs.percent = random.number(60, 100);
  hangs.partial_percent = random.chance(60) ? 0 : random.number(5, 50);
  hangs.late_percent = random.chance(60) ? 0 : random.number(5, 40);
  hangs.never_percent = random.chance(70) ? 0 : random.number(1, 20);
  hangs.stuck_percent = random.chance(50) ? 0 : random.number(20, 100);
  // Without a time that the user gives, the limit is learned: then rounds take long enough for that.
  const bool is_learned = random.chance(12);
  setup.training_ms = is_learned ? random.range(6'000, 12'000) : random.range(1'000, 4'000);
  std::optional<Ms> timeout_ms, first_timeout_ms;
  if (!is_learned && random.chance(85)) timeout_ms = random.range(1'500, 6'000);
  if (!is_learned && random.chance(50)) first_timeout_ms = random.range(2'000, 10'000);
  const int budget = random.chance(50) ? 3 : random.number(0, 5);
  const bool ignores_stuck = random.chance(20);
  Random of_terms(random.next());
  for (NodeSetup& node : setup.nodes) {
    node.rules.hang = protocol::JobRules::Hang::kReport;
    node.rules.hang_timeout_ms = timeout_ms;
    node.rules.hang_first_timeout_ms = first_timeout_ms;
    node.rules.hang_restarts = budget;
    node.ignores_stuck = ignores_stuck;
    Random same = of_terms;
    leave_some_out(node.terms, same);
  }
}

// Faults of all kinds that a verdict may meet. Half of these simulations have no others.
void add_restart_faults(FaultPlan& plan, const Setup& setup) {
  Random random(setup.seed, 32);
  if (random.chance(50)) plan.faults.clear();
  const int nodes = static_cast<int>(setup.nodes.size());
  const FrameType frames[] = {FrameType::kCollectEvidence, FrameType::kNodeEvidence, FrameType::kHangTold,
                              FrameType::kHangTold,        FrameType::kKeepState,    FrameType::kKeepState,
                              FrameType::kStopWorkers,     FrameType::kStopWorkers,  FrameType::kNodeStopped,
                              FrameType::kNodeStopped,     FrameType::kPrepareRound, FrameType::kRejected,
                              FrameType::kHangOver};
  const FaultKind kinds[] = {FaultKind::kCrashCoordinator, FaultKind::kCrashCoordinator,
                             FaultKind::kCrashCoordinator, FaultKind::kPauseCoordinator,
                             FaultKind::kPartition,        FaultKind::kCutToServer,
                             FaultKind::kCutFromServer,    FaultKind::kPauseAgent,
                             FaultKind::kFreezeHost,       FaultKind::kCrashAgent,
                             FaultKind::kCrashHost,        FaultKind::kReset,
                             FaultKind::kSignal,           FaultKind::kOrder,
                             FaultKind::kLateJoiner,       FaultKind::kFlood,
                             FaultKind::kCrashWorker,      FaultKind::kCrashGuardian};
  for (int i = random.chance(15) ? 0 : random.number(1, 4); i > 0; --i) {
    Fault fault;
    fault.trigger = {.type = Trigger::Type::kMessage,
                     .at_ms = 0,
                     .frame = frames[random.range(0, static_cast<std::int64_t>(std::size(frames)) - 1)],
                     .act = 0,
                     .state = {},
                     .nth = random.number(1, random.chance(70) ? nodes + 1 : 4 * nodes)};
    fault.kind = kinds[random.range(0, static_cast<std::int64_t>(std::size(kinds)) - 1)];
    fault.subject = random.number(0, nodes - 1);
    fault.delay_ms = random.chance(30) ? 0 : random.range(0, random.chance(60) ? 100 : 5'000);
    fault.lasts_ms = random.range(5, random.chance(50) ? 500 : 2 * setup.loss_timeout_ms);
    fault.comes_back = random.chance(85);
    fault.extra = random.number(0, 1000);
    plan.faults.push_back(fault);
  }
  plan.calm_ms +=
      setup.nodes.front().rules.hang_timeout_ms ? random.range(20'000, 90'000) : random.range(60'000, 200'000);
}

}  // namespace elastic::simulation
