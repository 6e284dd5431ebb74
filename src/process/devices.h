#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace elastic::process {

// The number of CPUs that this process may run on, by its affinity and by its cgroups' limits of CPU time. A part of a
// CPU is not counted, for a worker with half a CPU would hold up all others. At least 1.
int usable_cpus(const std::string& root = "/");

// The NVIDIA GPUs of this host, found without loading a library.
struct GpuInventory {
  int count = 0;
  std::vector<std::string> uuids;  // "GPU-...", by index; empty where only /dev told the count
};

// Reads <root>/proc/driver/nvidia/gpus, else counts <root>/dev/nvidia0, nvidia1, ...
GpuInventory find_gpus(const std::string& root = "/");

// How many of them CUDA would show a process with this CUDA_VISIBLE_DEVICES (nothing: not set), by the
// rule of torch.cuda.device_count(): indexes, UUIDs or their beginnings; the list ends at the first
// entry that is none; an empty list and a repeated entry mean no GPU at all.
int visible_gpus(const GpuInventory& inventory, const std::optional<std::string>& cuda_visible_devices);

}  // namespace elastic::process
