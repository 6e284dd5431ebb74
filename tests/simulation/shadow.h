#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "rendezvous/coordinator/coordinator.h"
#include "tests/simulation/invariants.h"
#include "tests/simulation/random.h"
#include "tests/simulation/recorder.h"
#include "tests/simulation/setup.h"

namespace elastic::simulation {

// Checks that messages of earlier rounds change nothing: two coordinators get all events of the real one, and the
// second one also gets messages of earlier rounds. Both must decide the same.
class Shadow {
 public:
  Shadow(Simulation& simulation, const Setup& setup, Random random);
  // `real`, the coordinator of a job, is about to handle this event.
  void takes(const OfServer& which, const coordinator::Coordinator* real, const coordinator::Event& event,
             std::int64_t now_ms);
  // The coordinator's process has died.
  void forget(std::uint32_t server) {
    std::erase_if(pairs_, [server](const auto& entry) { return entry.first.first == server; });
  }

 private:
  struct Pair {
    coordinator::Coordinator clean;
    coordinator::Coordinator disturbed;
    std::deque<protocol::AgentMessage> old;
  };
  void disturb(Pair& pair, const coordinator::MessageReceived& said, std::int64_t now_ms);

  Simulation& simulation_;
  const Setup& setup_;
  Random random_;
  bool on_;
  std::map<OfServer, Pair> pairs_;
};

}  // namespace elastic::simulation
