#include "cli/run/bindings.h"

#include <linux/mempolicy.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>

#include "src/base/log.h"
#include "src/base/result.h"
#include "src/base/text.h"
#include "src/numa/number_list.h"

namespace elastic::run {
namespace {

std::string reason_of(int error_number, const char* call, const char* where_invalid) {
  const std::string reason = errno_text(error_number);
  if (error_number == EPERM || error_number == ENOSYS)
    return format("{}; a filter (seccomp), or the kernel, does not allow {}()", reason, call);
  return error_number == EINVAL ? format("{}; {}", reason, where_invalid) : reason;
}

}  // namespace

Bindings::Bindings(const std::vector<numa::Placement>& placements) {
  for (const numa::Placement& placement : placements) {
    bindings_.push_back({.cpus = numa::mask_of(placement.cpus),
                         .memory_policy = placement.memory == numa::Memory::kBound ? MPOL_BIND : MPOL_PREFERRED,
                         .nodes = numa::mask_of(placement.nodes)});
  }
}

const process::Binding* Bindings::of(int local_rank) const {
  const auto index = static_cast<std::size_t>(local_rank);
  return index < bindings_.size() ? &bindings_[index] : nullptr;
}

void Bindings::started(int local_rank, const process::BindingRefusal& refusal) {
  using Kind = numa::Warning::Kind;
  if (refusal.cpus != 0 && told_.emplace(Kind::kCpusNotBound, local_rank).second) {
    warnings_.push_back(
        {Kind::kCpusNotBound, local_rank, reason_of(refusal.cpus, "sched_setaffinity", "its cpuset has none of them")});
  }
  if (refusal.memory != 0 && told_.emplace(Kind::kMemoryNotBound, local_rank).second) {
    warnings_.push_back({Kind::kMemoryNotBound, local_rank,
                         reason_of(refusal.memory, "set_mempolicy", "its cpuset has no memory of its NUMA nodes")});
  }
}

void Bindings::warn_of_unbound() {
  const std::string text = numa::text_of(std::exchange(warnings_, {}));
  if (!text.empty()) log::warning("not_bound", text);
}

}  // namespace elastic::run
