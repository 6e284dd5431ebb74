#pragma once

#include <optional>
#include <vector>

// Whether failed GPU tests are the fault of nodes. A test that fails in the same way on every node says nothing of any
// of them: it may itself be at fault, or what all have in common (an image, a driver, a setting of NCCL's). Then nobody
// is blamed for it, and the tests over TCP decide.
namespace elastic::health {

// How far a node came by itself.
struct GpuStanding {
  bool says_nothing = false;          // of the others' tests: it has other faults, or no GPU was tested
  std::optional<int> failed_in = {};  // the first step that failed, by any number; none: there was none, or no test
};

// The step in which the GPU test failed on every node that has tested GPUs and has no other fault, on two at least;
// else none.
std::optional<int> step_that_failed_everywhere(const std::vector<GpuStanding>& nodes);

// What came of NCCL between two nodes.
enum class Gathering {
  kNone,  // none was tried: a node has no GPUs or another NCCL, or the exchange over TCP had failed already
  kPassed,
  kFailed,  // in a way that need not be the fault of a GPU
  kDefect,  // wrong bytes, or an error of the hardware
};

// Whether all failed that were tried, in all stages so far, and none of them by a defect.
bool no_gathering_worked(const std::vector<Gathering>& tests);

}  // namespace elastic::health
