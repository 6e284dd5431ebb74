#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "rendezvous/coordinator/coordinator.h"
#include "tests/simulation/invariants.h"
#include "tests/simulation/random.h"
#include "tests/simulation/shape.h"

namespace elastic::simulation {

// No older message changes anything: two coordinators take all that the real one takes, and the second takes
// messages of earlier rounds besides. Both must do the same for ever after.
class Shadow {
 public:
  Shadow(World& world, const Shape& shape, Random random);
  // What the coordinator of a job, `real`, is about to take.
  void takes(const std::string& job, const coordinator::Coordinator* real, const coordinator::Event& event,
             std::int64_t now_ms);
  // The coordinator's process has died.
  void forget() { pairs_.clear(); }

 private:
  struct Pair {
    coordinator::Coordinator clean;
    coordinator::Coordinator disturbed;
    std::deque<protocol::AgentMessage> old;
  };
  void disturb(Pair& pair, const coordinator::MessageReceived& said, std::int64_t now_ms);

  World& world_;
  const Shape& shape_;
  Random random_;
  bool on_;
  std::map<std::string, Pair> pairs_;
};

}  // namespace elastic::simulation
