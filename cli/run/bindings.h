#pragma once

#include <set>
#include <utility>
#include <vector>

#include "src/numa/binding.h"
#include "src/process/spawn.h"

namespace elastic::run {

// The places of this node's workers as process::spawn() takes them, and warnings of what the kernel has refused.
class Bindings {
 public:
  // `placements`: by local rank; empty where nothing is bound.
  explicit Bindings(const std::vector<numa::Placement>& placements);

  // Null where the worker is not bound. It lives as long as this.
  const process::Binding* of(int local_rank) const;
  // A worker has been started; what the kernel has refused of its binding.
  void started(int local_rank, const process::BindingRefusal& refusal);
  // All workers of a round have been started. Warns of what is not bound: of each worker's CPUs once, and of its memory
  // once.
  void warn_of_unbound();

 private:
  std::vector<process::Binding> bindings_;
  std::vector<numa::Warning> warnings_;
  std::set<std::pair<numa::Warning::Kind, int>> told_;  // of these local ranks
};

}  // namespace elastic::run
