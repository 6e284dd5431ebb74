#pragma once

#include <array>
#include <cstddef>

#include "health/messages/threshold.h"

// From where on something about a node's GPUs is told, how bad it is, and what to do: all of it in one table.
namespace elastic::health {

// The rows of the table, in its order.
enum class GpuRule {
  kLost,
  kNeedsReset,
  kEcc,
  kRemapPending,
  kRemapFailed,
  kMemoryUsed,
  kPcieWidth,
  kPcieGeneration,
  kNvlinkDown,
  kNvlinkSomeDown,
  kNvlinkErrors,
  kNvlinkOldErrors,
  kHot,
  kPowerBrake,
  kSlowdown,
  kPersistence,
  kMig,
  kFabricWaiting,
  kFabricFailed,
  kNicAcross,
  kNicFar,
  kFewGpus,
  kModels,
  kDrivers,
  kXidUnfit,
  kXidSuspect,
  kXidOld,
  kXidUnknown,
  kNodesModel,
  kNodesDriver,
  kNodesCuda,
  kNodesNccl,
  kNodesCublaslt,
};

using GpuThreshold = Threshold<GpuRule>;

inline constexpr std::array kGpuThresholds = {
    GpuThreshold{GpuRule::kLost, "gpu-lost", "the driver cannot reach a GPU any more", 0, "", Severity::kFatal,
                 "reboot the node; see why: dmesg | grep Xid. If it happens again, have the GPU replaced"},
    GpuThreshold{GpuRule::kNeedsReset, "gpu-reset", "a GPU needs a reset", 0, "", Severity::kFatal,
                 "end what uses the GPU, then nvidia-smi --gpu-reset -i N, or reboot the node"},
    GpuThreshold{GpuRule::kEcc, "gpu-ecc", "uncorrectable ECC errors since the last reset, at least", 1, "",
                 Severity::kFatal,
                 "nvidia-smi --gpu-reset -i N; if they come back, have the GPU replaced: nvidia-smi -q -d ECC"},
    GpuThreshold{GpuRule::kRemapPending, "gpu-remap", "a row of memory waits for the next reset to be remapped", 0, "",
                 Severity::kWarning, "nvidia-smi --gpu-reset -i N as soon as nothing runs on the GPU"},
    GpuThreshold{GpuRule::kRemapFailed, "gpu-remap-failed", "a row of memory could not be remapped", 0, "",
                 Severity::kFatal, "have the GPU replaced: nvidia-smi -q -d ROW_REMAPPER"},
    GpuThreshold{GpuRule::kMemoryUsed, "gpu-memory", "memory in use before the workers start, at least", 30, "% of all",
                 Severity::kFatal, "end the processes that hold it: nvidia-smi, fuser -v /dev/nvidia*"},
    GpuThreshold{GpuRule::kPcieWidth, "gpu-pcie-width", "lanes of PCIe in use fewer than GPU and slot can have", 0, "",
                 Severity::kWarning,
                 "look at slot, riser and retimer: nvidia-smi -q, lspci -vv; have the GPU reseated"},
    GpuThreshold{GpuRule::kPcieGeneration, "gpu-pcie-gen",
                 "generation of PCIe right after work lower than GPU and slot can have", 0, "", Severity::kNote,
                 "look at it under load: nvidia-smi -q -d PERFORMANCE,CLOCK; then at the BIOS and the slot"},
    GpuThreshold{GpuRule::kNvlinkDown, "nvlink-down", "fewer NVLinks up than at another GPU of the node and its model",
                 0, "", Severity::kWarning,
                 "nvidia-smi nvlink --status; reset the GPUs or reboot the node; then look at bridge or baseboard"},
    GpuThreshold{GpuRule::kNvlinkSomeDown, "nvlink-some",
                 "some NVLinks down, as many as at each GPU of the node and its model", 0, "", Severity::kNote,
                 "if they are to be used: nvidia-smi nvlink --status, nvidia-smi topo -m"},
    GpuThreshold{GpuRule::kNvlinkErrors, "nvlink-errors", "errors of NVLinks during the check, at least", 1, "",
                 Severity::kWarning,
                 "see which: nvidia-smi nvlink --errorcounters; reset the GPU, then look at the link"},
    GpuThreshold{GpuRule::kNvlinkOldErrors, "nvlink-errors-old",
                 "errors of NVLinks since the driver was loaded, and none during the check, at least", 1, "",
                 Severity::kNote, "see whether they rise: nvidia-smi nvlink --errorcounters"},
    GpuThreshold{GpuRule::kHot, "gpu-hot", "clocks held back by heat", 0, "", Severity::kWarning,
                 "look at cooling and fans: nvidia-smi -q -d TEMPERATURE,PERFORMANCE"},
    GpuThreshold{GpuRule::kPowerBrake, "gpu-power-brake", "clocks held back by the host's power brake", 0, "",
                 Severity::kWarning, "look at power supplies and power cables: nvidia-smi -q -d PERFORMANCE,POWER"},
    GpuThreshold{GpuRule::kSlowdown, "gpu-slowdown", "clocks held back by the hardware, which does not say why", 0, "",
                 Severity::kNote, "look again under load: nvidia-smi -q -d PERFORMANCE"},
    GpuThreshold{GpuRule::kPersistence, "gpu-persistence", "persistence mode off", 0, "", Severity::kNote,
                 "systemctl enable --now nvidia-persistenced, or nvidia-smi -pm 1: workers start faster"},
    GpuThreshold{GpuRule::kMig, "gpu-mig", "MIG on", 0, "", Severity::kNote,
                 "if a worker is to have the whole GPU: nvidia-smi -i N -mig 0"},
    GpuThreshold{GpuRule::kFabricWaiting, "gpu-fabric", "a GPU is not registered with the NVLink fabric yet", 0, "",
                 Severity::kWarning, "systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A3 Fabric"},
    GpuThreshold{GpuRule::kFabricFailed, "gpu-fabric-failed", "a GPU could not be registered with the NVLink fabric", 0,
                 "", Severity::kFatal,
                 "see /var/log/fabricmanager.log; restart nvidia-fabricmanager, whose version is to be the driver's"},
    GpuThreshold{
        GpuRule::kNicAcross, "gpu-nic-sys",
        "no active port of InfiniBand or RoCE at a GPU's NUMA node (SYS), while most have one behind the same "
        "switches (PIX, PXB)",
        0, "", Severity::kWarning,
        "see which port is down or missing: nvidia-smi topo -m, ibstat, lspci -tv; then at its cable, slot or driver"},
    GpuThreshold{
        GpuRule::kNicFar, "gpu-nic-far",
        "the nearest active port of InfiniBand or RoCE behind the host bridge (PHB, NODE), while most have one "
        "behind the same switches (PIX, PXB)",
        0, "", Severity::kNote, "see whether a port is down or missing: nvidia-smi topo -m, ibstat, lspci -tv"},
    GpuThreshold{GpuRule::kFewGpus, "gpu-few", "GPUs that workers see fewer than", 1, "for each worker",
                 Severity::kWarning,
                 "start fewer workers, --nproc-per-node=gpu; look at CUDA_VISIBLE_DEVICES and lspci"},
    GpuThreshold{GpuRule::kModels, "gpu-models", "GPUs of the node of different models", 0, "", Severity::kWarning,
                 "choose GPUs of one model with CUDA_VISIBLE_DEVICES: the slowest sets the pace"},
    GpuThreshold{GpuRule::kDrivers, "gpu-drivers", "GPUs of the node with different drivers", 0, "", Severity::kWarning,
                 "reboot the node, so that one driver has all GPUs"},
    GpuThreshold{GpuRule::kXidUnfit, "gpu-xid", "an Xid after which a GPU is unfit, since the job began", 0, "",
                 Severity::kFatal,
                 "nvidia-smi --gpu-reset -i N, or reboot the node; if it comes back, have it replaced"},
    GpuThreshold{GpuRule::kXidSuspect, "gpu-xid-suspect", "an Xid after which a GPU works on, since the job began", 0,
                 "", Severity::kWarning,
                 "see what was hit: dmesg | grep Xid; nvidia-smi --gpu-reset -i N as soon as nothing runs on the GPU"},
    GpuThreshold{GpuRule::kXidOld, "gpu-xid-old", "such an Xid in the kernel log from before that", 0, "",
                 Severity::kNote, "if the GPU was not reset since then: nvidia-smi --gpu-reset -i N"},
    GpuThreshold{GpuRule::kXidUnknown, "gpu-xid-other", "an Xid that is not in our list, since the job began", 0, "",
                 Severity::kNote, "look it up in NVIDIA's Xid catalog: docs.nvidia.com/deploy/xid-errors"},
    GpuThreshold{GpuRule::kNodesModel, "nodes-gpu", "another model of GPU than most nodes have", 0, "",
                 Severity::kWarning, "use nodes of one kind: the slowest sets the pace"},
    GpuThreshold{GpuRule::kNodesDriver, "nodes-driver", "another NVIDIA driver than most nodes have", 0, "",
                 Severity::kWarning, "install one driver on all nodes: nvidia-smi"},
    GpuThreshold{GpuRule::kNodesCuda, "nodes-cuda", "a driver for another CUDA than on most nodes", 0, "",
                 Severity::kWarning, "install one driver on all nodes, and cuda-compat on all or none"},
    GpuThreshold{GpuRule::kNodesNccl, "nodes-nccl", "another NCCL than most nodes have", 0, "", Severity::kWarning,
                 "use one image or Python environment on all nodes, or name the library: --nccl-lib"},
    GpuThreshold{GpuRule::kNodesCublaslt, "nodes-cublaslt", "another cuBLASLt than most nodes have", 0, "",
                 Severity::kWarning, "use one image or Python environment on all nodes"},
};

constexpr const GpuThreshold& threshold(GpuRule rule) { return kGpuThresholds[static_cast<std::size_t>(rule)]; }

static_assert(in_order_of_rules(kGpuThresholds, GpuRule::kNodesCublaslt));

}  // namespace elastic::health
