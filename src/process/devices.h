#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace elastic::process {

// The number of CPUs that this process may run on, by its affinity and by its cgroups' limits of CPU time. A part of a
// CPU is not counted, for a worker with half a CPU would hold up all others. At least 1.
int usable_cpus(const std::string& root = "/");

// The numbers of the CPUs that this process may run on by its affinity, which is within its cpuset; sorted.
std::vector<int> allowed_cpus();

// The NVIDIA GPUs of this host, found without loading a library.
struct GpuInventory {
  int count = 0;
  std::vector<std::string> uuids = {};      // "GPU-...", by index; empty: not known of all
  std::vector<std::string> addresses = {};  // on the PCI bus, "0000:1a:00.0", by index; empty: not known
  bool are_alike = true;                    // all are of one model, as far as is known
};

// Reads <root>/proc/driver/nvidia/gpus: those that have a <root>/dev/nvidia<minor>, if there is any such file. Without
// the driver's files it counts those in /dev, and looks in <root>/sys/bus/pci/devices for their addresses. The index is
// the place on the PCI bus.
GpuInventory find_gpus(const std::string& root = "/");

// A GPU that CUDA shows to a process.
struct VisibleGpu {
  std::string address = {};  // empty: it is not known which one of the host's it is,
  std::string why = {};      // for this reason
};

// The GPUs that CUDA would show a process with this CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, if they are set, in
// CUDA's order. Where models differ, CUDA counts them in an order of its own unless that is PCI_BUS_ID, and only UUIDs
// say which one is meant.
std::vector<VisibleGpu> find_visible_gpus(const GpuInventory& inventory,
                                          const std::optional<std::string>& cuda_visible_devices,
                                          const std::optional<std::string>& cuda_device_order);

// How many of them CUDA would show a process with this CUDA_VISIBLE_DEVICES, if it is set, by the rule of
// torch.cuda.device_count(): indexes, or UUIDs, or their beginnings; the list ends at the first entry that is none, or
// of another kind than the first; an empty list and a repeated entry mean no GPU at all.
int visible_gpus(const GpuInventory& inventory, const std::optional<std::string>& cuda_visible_devices);

}  // namespace elastic::process
