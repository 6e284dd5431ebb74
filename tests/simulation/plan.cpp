// Makes the fault plan of a seed.
#include <algorithm>
#include <iterator>

#include "src/base/text.h"
#include "tests/simulation/faults.h"

namespace elastic::simulation {

using protocol::FrameType;

namespace {

constexpr FrameType kFrames[] = {FrameType::kHello,          FrameType::kChallenge,    FrameType::kWelcome,
                                 FrameType::kKeepAlive,      FrameType::kLeaseGrant,   FrameType::kNodeJoins,
                                 FrameType::kStoreIsOpen,    FrameType::kWorkerFailed, FrameType::kWorkersSucceeded,
                                 FrameType::kNodeStopped,    FrameType::kNodeLeaves,   FrameType::kCheckDone,
                                 FrameType::kJobResultHeard, FrameType::kPrepareRound, FrameType::kRunWorkers,
                                 FrameType::kStopWorkers,    FrameType::kEndJob,       FrameType::kRunCheck,
                                 FrameType::kDismiss,        FrameType::kRejected,     FrameType::kPrepareRound,
                                 FrameType::kStopWorkers,    FrameType::kNodeStopped,  FrameType::kEndJob};

constexpr JobState kEntered[] = {JobState::kForming,  JobState::kFormingAgain, JobState::kRecovery,
                                 JobState::kChecking, JobState::kPreparing,    JobState::kRunning,
                                 JobState::kStopping, JobState::kEnding,       JobState::kNoJob,
                                 JobState::kStopping, JobState::kFormingAgain, JobState::kRecovery};

// The effects of an agent's life cycle.
template <class T, std::size_t I = 0>
constexpr std::size_t act() {
  if constexpr (std::is_same_v<std::variant_alternative_t<I, agent::Effect::variant>, T>)
    return I;
  else
    return act<T, I + 1>();
}
constexpr std::size_t kActs[] = {act<agent::OpenStore>(),    act<agent::StartWorkers>(), act<agent::SignalWorkers>(),
                                 act<agent::AwaitAllGone>(), act<agent::CloseStore>(),   act<agent::CheckNode>(),
                                 act<agent::Finish>()};

Trigger trigger_of(Random& random, const Setup& setup) {
  const int nodes = static_cast<int>(setup.nodes.size());
  Trigger trigger;
  const int kind = random.number(1, 100);
  if (kind <= 30) {
    trigger.type = Trigger::Type::kTime;
    trigger.at_ms = random.chance(50) ? random.range(0, 800) : random.range(0, 6000);
  } else if (kind <= 65) {
    trigger.type = Trigger::Type::kMessage;
    trigger.frame = kFrames[random.range(0, static_cast<std::int64_t>(std::size(kFrames)) - 1)];
    trigger.nth = random.chance(60) ? random.number(1, nodes + 1) : random.number(1, 4 * nodes + 1);
  } else if (kind <= 80) {
    trigger.type = Trigger::Type::kAct;
    trigger.act = kActs[random.range(0, static_cast<std::int64_t>(std::size(kActs)) - 1)];
    trigger.nth = random.number(1, 2 * nodes + 1);
  } else {
    trigger.type = Trigger::Type::kJobState;
    trigger.state = kEntered[random.range(0, static_cast<std::int64_t>(std::size(kEntered)) - 1)];
    trigger.nth = random.number(1, 4);
  }
  return trigger;
}

// Faults that end a job, or most of it, are rarer, so that other faults strike in later states, too.
FaultKind kind_of(Random& random) {
  const int draw = random.number(1, 100);
  if (draw <= 22) return FaultKind::kCrashWorker;
  if (draw <= 30) return FaultKind::kCrashCoordinator;
  for (;;) {
    const auto kind = static_cast<FaultKind>(random.range(0, static_cast<std::int64_t>(kDrawnFaults) - 1));
    const bool rare = kind == FaultKind::kSignal || kind == FaultKind::kCrashGuardian ||
                      kind == FaultKind::kUnguarded || kind == FaultKind::kOtherTerms ||
                      kind == FaultKind::kRankClaimedTwice || kind == FaultKind::kClockJump;
    if (!rare || random.chance(50)) return kind;
  }
}

// What an operator orders has a random stream of its own: the other faults of a seed are the same with it and without.
void add_orders(FaultPlan& plan, const Setup& setup) {
  Random random(setup.seed, 4);
  if (!random.chance(15)) return;
  const int count = random.number(1, 3);
  for (int i = 0; i < count; ++i) {
    plan.faults.push_back({.trigger = trigger_of(random, setup),
                           .kind = FaultKind::kOrder,
                           .subject = random.number(0, static_cast<int>(setup.nodes.size()) - 1),
                           .delay_ms = random.chance(50) ? 0 : random.range(0, 200),
                           .extra = random.number(0, 1000)});
  }
}

// The same holds of questions for stacks, which change nothing for the job.
void add_stacks(FaultPlan& plan, const Setup& setup) {
  Random random(setup.seed, 14);
  if (!random.chance(15)) return;
  const int count = random.number(1, 3);
  for (int i = 0; i < count; ++i) {
    plan.faults.push_back({.trigger = trigger_of(random, setup),
                           .kind = FaultKind::kStacks,
                           .subject = random.number(0, static_cast<int>(setup.nodes.size()) - 1),
                           .delay_ms = random.chance(50) ? 0 : random.range(0, 200),
                           .extra = random.number(0, 1000)});
  }
}

// Where votes decide, the network falls apart and coordinators die more often, mostly while workers run.
void add_losses(FaultPlan& plan, const Setup& setup) {
  if (setup.failover == Setup::Failover::kOff) return;
  Random random(setup.seed, 7);
  const int count = random.number(1, 4);
  for (int i = 0; i < count; ++i) {
    Fault fault;
    fault.trigger = trigger_of(random, setup);
    if (random.chance(60)) {
      fault.trigger = {.type = Trigger::Type::kJobState,
                       .at_ms = 0,
                       .frame = {},
                       .act = 0,
                       .state = JobState::kRunning,
                       .nth = random.number(1, 3)};
    }
    fault.kind = random.chance(55)   ? FaultKind::kPartition
                 : random.chance(70) ? FaultKind::kCrashCoordinator
                                     : FaultKind::kPauseCoordinator;
    fault.subject = random.number(0, static_cast<int>(setup.nodes.size()) - 1);
    fault.delay_ms = random.range(0, 100);
    fault.lasts_ms = random.range(setup.loss_timeout_ms / 2, 4 * setup.loss_timeout_ms);
    fault.comes_back = random.chance(60);
    fault.extra = random.number(0, 1000);
    plan.faults.push_back(fault);
  }
  plan.calm_ms += random.range(0, 3 * setup.loss_timeout_ms);
}

// The coordinator's node is told to leave, and transfers its leadership while something else happens to it, to the next
// leader or to the network. A random stream of its own.
void add_crossings(FaultPlan& plan, const Setup& setup) {
  Random random(setup.seed, 9);
  if (setup.failover != Setup::Failover::kFromNode0 || !random.chance(20)) return;
  Fault fault;
  fault.trigger = {.type = Trigger::Type::kJobState,
                   .at_ms = 0,
                   .frame = {},
                   .act = 0,
                   .state = JobState::kRunning,
                   .nth = random.number(1, 3)};
  fault.kind = FaultKind::kSignal;
  fault.extra = 1;  // SIGTERM
  fault.delay_ms = random.range(0, 50);
  plan.faults.push_back(fault);
  const FaultKind kinds[] = {FaultKind::kSignal,    FaultKind::kCrashAgent,       FaultKind::kCrashHost,
                             FaultKind::kPartition, FaultKind::kCrashCoordinator, FaultKind::kPauseCoordinator};
  for (int i = random.number(1, 2); i > 0; --i) {
    fault.trigger = {.type = Trigger::Type::kMessage,
                     .at_ms = 0,
                     .frame = FrameType::kResigned,
                     .act = 0,
                     .state = {},
                     .nth = random.number(1, static_cast<int>(setup.nodes.size()))};
    fault.kind = kinds[random.range(0, static_cast<std::int64_t>(std::size(kinds)) - 1)];
    fault.subject = random.number(0, static_cast<int>(setup.nodes.size()) - 1);
    fault.delay_ms = random.chance(40) ? 0 : random.range(0, 30);
    fault.lasts_ms = random.range(5, 2 * setup.loss_timeout_ms);
    fault.comes_back = random.chance(60);
    fault.extra = random.number(0, 1000);
    plan.faults.push_back(fault);
  }
}

// The coordinator's process dies, and the nodes that it reaches know that, just after the network has fallen apart;
// perhaps the next one dies, too. A random stream of its own.
void add_double_losses(FaultPlan& plan, const Setup& setup) {
  Random random(setup.seed, 10);
  if (setup.failover == Setup::Failover::kOff || !random.chance(25)) return;
  Fault fault;
  fault.trigger = {.type = Trigger::Type::kJobState,
                   .at_ms = 0,
                   .frame = {},
                   .act = 0,
                   .state = JobState::kRunning,
                   .nth = random.number(1, 3)};
  fault.kind = FaultKind::kPartition;
  fault.delay_ms = random.range(0, 100);
  fault.lasts_ms = random.range(setup.loss_timeout_ms / 2, 3 * setup.loss_timeout_ms);
  fault.extra = 4 * random.number(0, 200) + 1;
  plan.faults.push_back(fault);
  fault.kind = FaultKind::kCrashCoordinator;
  fault.delay_ms += random.range(0, 100);
  fault.comes_back = random.chance(40);
  fault.extra = 1;
  plan.faults.push_back(fault);
  fault.trigger.state = JobState::kRecovery;
  fault.trigger.nth = 1;
  fault.delay_ms = random.range(0, setup.loss_timeout_ms / 2);
  if (random.chance(40)) plan.faults.push_back(fault);
}

// The coordinator's host comes back empty while the nodes that it had are cut off from it, and fresh nodes find it
// first. A random stream of its own.
void add_return(FaultPlan& plan, const Setup& setup) {
  Random random(setup.seed, 8);
  if (setup.is_by_file() || !random.chance(6)) return;
  Fault fault;
  fault.trigger = {.type = Trigger::Type::kJobState,
                   .at_ms = 0,
                   .frame = {},
                   .act = 0,
                   .state = JobState::kRunning,
                   .nth = random.number(1, 2)};
  fault.extra = 1;
  fault.lasts_ms = random.range(setup.loss_timeout_ms / 2, 2 * setup.loss_timeout_ms);
  fault.kind = FaultKind::kPartition;
  for (std::size_t i = 0; i < setup.nodes.size(); ++i) {
    fault.subject = static_cast<int>(i);
    plan.faults.push_back(fault);
  }
  fault.kind = FaultKind::kCrashCoordinator;
  fault.delay_ms = 1;
  fault.lasts_ms = random.range(5, 300);
  plan.faults.push_back(fault);
  fault.kind = FaultKind::kFlood;
  fault.delay_ms = random.range(1, 500);
  fault.extra = random.number(0, std::max(0, setup.nodes.front().terms.max_nodes - 1));
  if (random.chance(85)) plan.faults.push_back(fault);
}

// Where rounds hang, faults strike while evidence is collected and told, too. Half of these simulations have no others.
void add_hang_faults(FaultPlan& plan, const Setup& setup) {
  if (!setup.hangs) return;
  Random random(setup.seed, 22);
  if (random.chance(50)) plan.faults.clear();
  const int nodes = static_cast<int>(setup.nodes.size());
  const FrameType frames[] = {FrameType::kCollectEvidence, FrameType::kCollectEvidence, FrameType::kNodeEvidence,
                              FrameType::kHangTold,        FrameType::kHangOver,        FrameType::kKeepState};
  const FaultKind kinds[] = {FaultKind::kCrashCoordinator,
                             FaultKind::kCrashCoordinator,
                             FaultKind::kPauseCoordinator,
                             FaultKind::kPartition,
                             FaultKind::kPauseAgent,
                             FaultKind::kFreezeHost,
                             FaultKind::kCrashAgent,
                             FaultKind::kCrashHost,
                             FaultKind::kReset,
                             FaultKind::kSignal};
  for (int i = random.chance(20) ? 0 : random.number(1, 3); i > 0; --i) {
    Fault fault;
    fault.trigger = {.type = Trigger::Type::kMessage,
                     .at_ms = 0,
                     .frame = frames[random.range(0, static_cast<std::int64_t>(std::size(frames)) - 1)],
                     .act = 0,
                     .state = {},
                     .nth = random.number(1, nodes + 1)};
    fault.kind = kinds[random.range(0, static_cast<std::int64_t>(std::size(kinds)) - 1)];
    fault.subject = random.number(0, nodes - 1);
    fault.delay_ms = random.chance(30) ? 0 : random.range(0, random.chance(50) ? 100 : 5000);
    fault.lasts_ms = random.range(5, random.chance(50) ? 500 : 2 * setup.loss_timeout_ms);
    fault.comes_back = random.chance(85);
    fault.extra = random.number(0, 1000);
    plan.faults.push_back(fault);
  }
  plan.calm_ms += random.range(5'000, 40'000);
}

}  // namespace

FaultPlan plan_of(const Setup& setup) {
  Random random(setup.seed, 2);
  FaultPlan plan;
  const int count = random.chance(5) ? 0 : random.number(2, 10);
  const Ms loss_ms = setup.loss_timeout_ms;
  for (int i = 0; i < count; ++i) {
    Fault fault;
    fault.trigger = trigger_of(random, setup);
    fault.kind = kind_of(random);
    fault.subject = random.number(0, static_cast<int>(setup.nodes.size()) - 1);
    fault.delay_ms = random.chance(60) ? 0 : random.range(0, random.chance(50) ? 10 : 200);
    // A fault lasts less than a lease, about as long as one, or longer than all timeouts.
    const int length = random.number(1, 100);
    if (length <= 40)
      fault.lasts_ms = random.range(5, 300);
    else if (length <= 80)
      fault.lasts_ms = random.range(loss_ms / 3, loss_ms * 4 / 3);
    else
      fault.lasts_ms = random.range(loss_ms, 3 * loss_ms);
    fault.comes_back = random.chance(85);
    fault.extra = random.number(0, 1000);
    plan.faults.push_back(fault);
  }
  // To get many rounds, a worker fails in each of the first few.
  const int rounds = random.chance(60) ? random.number(1, 5) : 0;
  for (int round = 1; round <= rounds; ++round) {
    Fault fault;
    fault.trigger = {
        .type = Trigger::Type::kJobState, .at_ms = 0, .frame = {}, .act = 0, .state = JobState::kRunning, .nth = round};
    fault.kind = random.chance(75)   ? FaultKind::kCrashWorker
                 : random.chance(50) ? FaultKind::kCrashAgent
                                     : FaultKind::kFlood;
    fault.subject = random.number(0, static_cast<int>(setup.nodes.size()) - 1);
    fault.delay_ms = random.range(5, 5 + setup.training_ms);
    fault.lasts_ms = random.range(5, 500);
    fault.extra = random.number(0, 1000);
    plan.faults.push_back(fault);
  }
  plan.calm_ms = random.range(4, 12) * 1000;
  add_orders(plan, setup);
  add_stacks(plan, setup);
  add_losses(plan, setup);
  add_return(plan, setup);
  add_crossings(plan, setup);
  add_double_losses(plan, setup);
  add_hang_faults(plan, setup);
  return plan;
}

std::string text(const Fault& fault) {
  const Trigger& trigger = fault.trigger;
  std::string when;
  switch (trigger.type) {
    case Trigger::Type::kTime: when = format("at {} ms", trigger.at_ms); break;
    case Trigger::Type::kMessage:
      when = format("when {} number {} is sent", protocol::name_of(trigger.frame), trigger.nth);
      break;
    case Trigger::Type::kAct: {
      const char* const names[] = {"opens a store",  "starts workers", "signals workers", "awaits the workers' end",
                                   "closes a store", "checks",         "is done"};
      const auto place = std::ranges::find(kActs, trigger.act) - std::begin(kActs);
      when = format("when an agent {}, time {}", names[place], trigger.nth);
      break;
    }
    case Trigger::Type::kJobState:
      when = format("when the coordinator is {}, time {}", name(trigger.state), trigger.nth);
      break;
  }
  return format("{}{}: {}, node {}, for {} ms{} ({})", when,
                fault.delay_ms > 0 ? format(" and {} ms later", fault.delay_ms) : "", name(fault.kind), fault.subject,
                fault.lasts_ms, fault.comes_back ? "" : ", for good", fault.extra);
}

}  // namespace elastic::simulation
