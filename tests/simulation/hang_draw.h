#pragma once

#include <optional>

#include "tests/simulation/hang_evidence.h"
#include "tests/simulation/random.h"
#include "tests/simulation/setup.h"
#include "tests/simulation/workers.h"

namespace elastic::simulation {

// How the rounds of a job with --hang=restart hang: often on the same node again, mostly at a line of its own, at times
// at a line where other nodes have hung; and with processes that SIGKILL does not end.
class HangDraw {
 public:
  explicit HangDraw(Random random) : random_(random) {}
  // A hang of this world, without the address of its node.
  Hang next(const HangSetup& setup, const World& world, const Workers& workers, Ms now_ms);
  // For so long it lasts; nothing: until its round ends, or for long after it was told.
  std::optional<Ms> lasts_ms() { return random_.chance(80) ? std::nullopt : std::optional(random_.range(0, 40'000)); }
  // For so long it lasts after it was told, if its round does not end.
  Ms lasts_on_ms() { return random_.range(30'000, 60'000); }

 private:
  HangKind kind();
  WorkerId culprit(const World& world, const Workers& workers);

  Random random_;
  std::optional<int> node_;  // the one that hung first
};

}  // namespace elastic::simulation
