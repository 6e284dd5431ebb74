#pragma once

#include <optional>
#include <vector>

// Whether failed GPU tests show that nodes are faulty. A test that fails in the same way on every node does not: the
// cause may be the test itself, or something that all nodes have in common (an image, a driver, a setting of NCCL).
// Then no node is left out because of it, and the tests over TCP decide.
namespace elastic::health {

// How far a node came in its own GPU test.
struct GpuStanding {
  bool says_nothing = false;  // its test is not compared with the others': it has other faults, or tested no GPU
  std::optional<int> failed_in =
      {};  // the number of the first step that failed; none: no step failed, or no GPU was tested
};

// The step in which the GPU test failed on every node that has tested GPUs and has no other fault, if these are at
// least two nodes; else none.
std::optional<int> step_that_failed_everywhere(const std::vector<GpuStanding>& nodes);

// The result of an all-gather over NCCL between two nodes.
enum class Gathering {
  kNone,  // there was none: a node has no GPUs or another NCCL, or the exchange over TCP had failed already
  kPassed,
  kFailed,  // it failed without showing that a GPU is at fault
  kDefect,  // bytes arrived wrong, or there was a hardware error
};

// Whether there were all-gathers in the stages so far, and all of them are kFailed.
bool no_gathering_worked(const std::vector<Gathering>& tests);

}  // namespace elastic::health
