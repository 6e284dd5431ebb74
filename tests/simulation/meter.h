#pragma once

#include <utility>

namespace elastic::simulation {

// Whose code runs just now, for whoever counts memory (memory_per_node.cpp): the agents', the coordinator's, or that of
// the simulator around them.
enum class Part : unsigned char { kSimulator, kAgent, kCoordinator };
inline Part running_part = Part::kSimulator;

class Running {
 public:
  explicit Running(Part part) : before_(std::exchange(running_part, part)) {}
  ~Running() { running_part = before_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Part before_;
};

}  // namespace elastic::simulation
