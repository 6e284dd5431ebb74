#include "tests/simulation/hangs.h"

#include <doctest/doctest.h>

#include "tests/simulation/simulation.h"

namespace elastic::simulation {
namespace {

#if defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
constexpr int kNodes = 100;  // this build takes ten times as long
#else
constexpr int kNodes = 1'250;
#endif
constexpr int kWorkersPerNode = 8;
constexpr Ms kLimitMs = 3'000;
constexpr Ms kNever = 1'000'000'000;

// A job of nodes with so many workers each, whose first round hangs in this way, until it is told.
Setup hanging(int nodes, int workers, HangKind kind, std::uint64_t seed = 1) {
  Setup setup = plain_setup(seed, nodes);
  setup.loss_timeout_ms = 60'000;
  setup.steady = true;
  setup.training_ms = 2'000;
  setup.stubborn_percent = setup.saving_percent = 0;
  setup.hangs = HangSetup{.beat_ms = 500,
                          .percent = 100,
                          .kind = kind,
                          .all_last = true,
                          .partial_percent = 0,
                          .late_percent = 0,
                          .never_percent = 0};
  for (NodeSetup& node : setup.nodes) {
    node.workers = workers;
    node.rules.hang = protocol::JobRules::Hang::kReport;
    node.rules.hang_timeout_ms = kLimitMs;
  }
  return setup;
}

bool are_all_told(Simulation& simulation) {
  for (const auto& node : simulation.nodes()) {
    if (!simulation.hangs().is_told(*node, 0)) return false;
  }
  return true;
}

// Runs until all nodes have been told; false if that does not happen in a minute.
bool runs_until_told(Simulation& simulation) {
  simulation.begin();
  (void)simulation.run_until([&] { return are_all_told(simulation) || simulation.now_ms() > 60'000; });
  return are_all_told(simulation);
}

}  // namespace

TEST_CASE("a round that hangs is told on every node, with whoever is at fault where somebody is") {
  for (int kind = 0; kind < kHangKinds; ++kind) {
    CAPTURE(kind);
    Coverage coverage;
    Simulation simulation(hanging(4, 2, static_cast<HangKind>(kind)), {{}, kNever}, coverage, nullptr);
    CHECK(runs_until_told(simulation));
    CHECK(simulation.hangs().counts().verdicts() == 1);
    CHECK(simulation.hangs().counts().named() == (has_culprit(static_cast<HangKind>(kind)) ? 1U : 0U));
  }
}

TEST_CASE("of rounds that make progress no evidence is asked for") {
  Coverage coverage;
  Setup setup = hanging(4, 2, HangKind::kElsewhere);
  setup.hangs->percent = 0;
  setup.training_ms = 60'000;
  Simulation simulation(setup, {{}, kNever}, coverage, nullptr);
  CHECK_FALSE(runs_until_told(simulation));
  CHECK(simulation.hangs().counts().collections() == 0);
}

TEST_CASE("of 10,000 ranks no wrong one is named, though evidence is lost and the coordinator dies while it collects") {
  for (const HangKind kind : {HangKind::kElsewhere, HangKind::kBehind}) {
    CAPTURE(name(kind));
    Setup setup = hanging(kNodes, kWorkersPerNode, kind, 7);
    setup.hangs->partial_percent = 5;
    setup.hangs->late_percent = 2;
    setup.hangs->never_percent = 1;
    // The coordinator dies when about half of the nodes are asked, and is back soon.
    Fault dies;
    dies.trigger = {.type = Trigger::Type::kMessage,
                    .at_ms = 0,
                    .frame = protocol::FrameType::kCollectEvidence,
                    .act = 0,
                    .state = {},
                    .nth = kNodes / 2};
    dies.kind = FaultKind::kCrashCoordinator;
    dies.lasts_ms = 300;
    dies.extra = 1;
    Coverage coverage;
    Simulation simulation(setup, {{dies}, kNever}, coverage, nullptr);
    CHECK(runs_until_told(simulation));
    CHECK(simulation.hangs().counts().collections() == 2);
    CHECK(simulation.hangs().counts().verdicts() == 1);
  }
}

}  // namespace elastic::simulation
