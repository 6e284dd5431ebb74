#pragma once

#include <optional>
#include <string>

#include "src/process/devices.h"

// Devices of other makers than NVIDIA, found in sysfs and /dev without loading a library.
namespace elastic::process {

// AMD's GPUs in the order in which ROCm counts them: those of the kernel's topology (/sys/class/kfd) whose file in
// /dev/dri this process may open. Empty where it may not open /dev/kfd. UUIDs are ROCm's, "GPU-0123456789abcdef".
GpuInventory find_amd_gpus(const std::string& root = "/");

// Whether the GPU with this PCI address is a display controller in a processor: others of its processor's devices are
// functions beside it. False for an accelerator in a processor (MI300A).
bool is_in_amd_processor(const std::string& address, const std::string& root = "/");

// How many of them a program of HIP has, by those of the variables that are set. ROCR_VISIBLE_DEVICES is applied first.
// Of what it leaves, HIP_VISIBLE_DEVICES chooses, or CUDA_VISIBLE_DEVICES where that is not set, by the rule of
// torch.cuda.device_count().
int visible_amd_gpus(const GpuInventory& gpus, const std::optional<std::string>& rocr_visible_devices,
                     const std::optional<std::string>& hip_visible_devices,
                     const std::optional<std::string>& cuda_visible_devices);

// Intel's GPUs as devices of Level Zero, which counts the discrete ones first.
struct IntelGpus {
  int discrete = 0;    // of a card with several tiles each tile, unless tiles are hidden
  int integrated = 0;  // in the processor
  bool operator==(const IntelGpus&) const = default;
};

// Those on the PCI bus that the drivers i915 and xe have and whose file in /dev/dri this process may open.
// `hierarchy`: ZE_FLAT_DEVICE_HIERARCHY; COMPOSITE hides tiles.
IntelGpus find_intel_gpus(const std::optional<std::string>& hierarchy, const std::string& root = "/");

// Those of them that ZE_AFFINITY_MASK leaves visible (not set or empty: all). An entry of a tile, "0.1", counts as its
// device.
IntelGpus visible_intel_gpus(const IntelGpus& gpus, const std::optional<std::string>& affinity_mask);

// Whether there is an NPU of Huawei's, /dev/davinci0 or another number.
bool has_ascend(const std::string& root = "/");

}  // namespace elastic::process
