#include "tests/simulation/hang_draw.h"

#include <vector>

namespace elastic::simulation {

namespace {

constexpr int kLineOfAll = 88;
constexpr int kFirstOwnLine = 100;

}  // namespace

HangKind HangDraw::kind() {
  const int draw = random_.number(1, 100);
  if (draw <= 35) return HangKind::kElsewhere;
  if (draw <= 50) return HangKind::kBehind;
  if (draw <= 58) return HangKind::kStopped;
  if (draw <= 72) return HangKind::kDisk;
  if (draw <= 82) return HangKind::kXid;
  return static_cast<HangKind>(random_.number(static_cast<int>(HangKind::kNotAtInit), kHangKinds - 1));
}

WorkerId HangDraw::culprit(const World& world, const Workers& workers) {
  std::vector<WorkerId> again;
  for (const WorkerId id : world.workers) {
    if (workers.at(id).node == node_) again.push_back(id);
  }
  const std::vector<WorkerId>& all = !again.empty() && random_.chance(60) ? again : world.workers;
  return all[static_cast<std::size_t>(random_.range(0, static_cast<std::int64_t>(all.size()) - 1))];
}

Hang HangDraw::next(const HangSetup& setup, const World& world, const Workers& workers, Ms now_ms) {
  const HangKind how = kind();
  const Worker& worker = workers.at(culprit(world, workers));
  if (!node_) node_ = worker.node;
  Hang hang{.kind = setup.kind.value_or(how), .rank = worker.rank, .node = worker.node, .world_size = world.world_size};
  hang.line = random_.chance(12) ? kLineOfAll : kFirstOwnLine + worker.node;
  const bool is_likely = hang.kind == HangKind::kDisk || hang.kind == HangKind::kXid;
  const bool is_stuck = random_.chance(setup.stuck_percent) && random_.chance(is_likely ? 100 : 30);
  if (is_stuck && hang.kind != HangKind::kNotAtInit) hang.stuck_until_ms = now_ms + random_.range(5'000, 120'000);
  return hang;
}

}  // namespace elastic::simulation
