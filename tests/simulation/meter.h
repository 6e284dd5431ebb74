#pragma once

#include <utility>

namespace elastic::simulation {

// The part of the program that is running, for memory_per_node.cpp, which counts the memory of each: the agents, the
// coordinator, or the simulator around them.
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
