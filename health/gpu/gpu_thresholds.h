#pragma once

#include <array>
#include <cstddef>

#include "health/messages/threshold.h"

// The rules by which a node's GPUs are judged, in one table: the limits, how bad each finding is, and what to do.
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
  kXidUnhealthy,
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
                 "end the processes that use the GPU, then nvidia-smi --gpu-reset -i N, or reboot the node"},
    GpuThreshold{GpuRule::kEcc, "gpu-ecc", "uncorrectable ECC errors since the last reset, at least", 1, "",
                 Severity::kFatal,
                 "nvidia-smi --gpu-reset -i N; if they come back, have the GPU replaced: nvidia-smi -q -d ECC"},
    GpuThreshold{GpuRule::kRemapPending, "gpu-remap", "a row of memory waits for the next reset to be remapped", 0, "",
                 Severity::kWarning, "nvidia-smi --gpu-reset -i N as soon as nothing runs on the GPU"},
    GpuThreshold{GpuRule::kRemapFailed, "gpu-remap-failed", "a row of memory could not be remapped", 0, "",
                 Severity::kFatal, "have the GPU replaced: nvidia-smi -q -d ROW_REMAPPER"},
    GpuThreshold{GpuRule::kMemoryUsed, "gpu-memory", "memory in use before the workers start, at least", 30, "% of all",
                 Severity::kFatal, "end the processes that hold it: nvidia-smi, fuser -v /dev/nvidia*"},
    GpuThreshold{GpuRule::kPcieWidth, "gpu-pcie-width", "fewer PCIe lanes in use than the GPU and the slot support", 0,
                 "", Severity::kWarning,
                 "check the slot, the riser and the retimer: nvidia-smi -q, lspci -vv; have the GPU reseated"},
    GpuThreshold{GpuRule::kPcieGeneration, "gpu-pcie-gen",
                 "PCIe generation right after load lower than the GPU and the slot support", 0, "", Severity::kNote,
                 "check it under load: nvidia-smi -q -d PERFORMANCE,CLOCK; then check the BIOS and the slot"},
    GpuThreshold{GpuRule::kNvlinkDown, "nvlink-down",
                 "fewer NVLinks up than at another GPU of the same model in the node", 0, "", Severity::kWarning,
                 "nvidia-smi nvlink --status; reset the GPUs or reboot the node; then check the bridge or baseboard"},
    GpuThreshold{GpuRule::kNvlinkSomeDown, "nvlink-some",
                 "some NVLinks down, as many as at all GPUs of the same model in the node", 0, "", Severity::kNote,
                 "if they should be used: nvidia-smi nvlink --status, nvidia-smi topo -m"},
    GpuThreshold{GpuRule::kNvlinkErrors, "nvlink-errors", "errors of NVLinks during the check, at least", 1, "",
                 Severity::kWarning,
                 "see which: nvidia-smi nvlink --errorcounters; reset the GPU, then check the link"},
    GpuThreshold{GpuRule::kNvlinkOldErrors, "nvlink-errors-old",
                 "errors of NVLinks since the driver was loaded, and none during the check, at least", 1, "",
                 Severity::kNote, "see whether they rise: nvidia-smi nvlink --errorcounters"},
    GpuThreshold{GpuRule::kHot, "gpu-hot", "clocks throttled by heat", 0, "", Severity::kWarning,
                 "check cooling and fans: nvidia-smi -q -d TEMPERATURE,PERFORMANCE"},
    GpuThreshold{GpuRule::kPowerBrake, "gpu-power-brake", "clocks throttled by the host's power brake", 0, "",
                 Severity::kWarning, "check power supplies and power cables: nvidia-smi -q -d PERFORMANCE,POWER"},
    GpuThreshold{GpuRule::kSlowdown, "gpu-slowdown", "clocks throttled by the hardware, which gives no reason", 0, "",
                 Severity::kNote, "check again under load: nvidia-smi -q -d PERFORMANCE"},
    GpuThreshold{GpuRule::kPersistence, "gpu-persistence", "persistence mode off", 0, "", Severity::kNote,
                 "systemctl enable --now nvidia-persistenced, or nvidia-smi -pm 1: workers start faster"},
    GpuThreshold{GpuRule::kMig, "gpu-mig", "MIG on", 0, "", Severity::kNote,
                 "if a worker should have the whole GPU: nvidia-smi -i N -mig 0"},
    GpuThreshold{GpuRule::kFabricWaiting, "gpu-fabric", "a GPU is not registered with the NVLink fabric yet", 0, "",
                 Severity::kWarning, "systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A3 Fabric"},
    GpuThreshold{
        GpuRule::kFabricFailed, "gpu-fabric-failed", "a GPU could not be registered with the NVLink fabric", 0, "",
        Severity::kFatal,
        "see /var/log/fabricmanager.log; restart nvidia-fabricmanager, whose version has to match the driver's"},
    GpuThreshold{GpuRule::kNicAcross, "gpu-nic-sys",
                 "no active InfiniBand or RoCE port on a GPU's NUMA node (SYS), while most share a PCIe switch with "
                 "one (PIX, PXB)",
                 0, "", Severity::kWarning,
                 "see which port is down or missing: nvidia-smi topo -m, ibstat, lspci -tv; then check its cable, slot "
                 "or driver"},
    GpuThreshold{GpuRule::kNicFar, "gpu-nic-far",
                 "a GPU's nearest active InfiniBand or RoCE port behind the host bridge (PHB, NODE), while most share "
                 "a PCIe switch with one (PIX, PXB)",
                 0, "", Severity::kNote,
                 "see whether a port is down or missing: nvidia-smi topo -m, ibstat, lspci -tv"},
    GpuThreshold{GpuRule::kFewGpus, "gpu-few", "workers see fewer GPUs than", 1, "for each worker", Severity::kWarning,
                 "start fewer workers: --nproc-per-node=gpu; check CUDA_VISIBLE_DEVICES and lspci"},
    GpuThreshold{GpuRule::kModels, "gpu-models", "GPUs of different models in the node", 0, "", Severity::kWarning,
                 "choose GPUs of one model with CUDA_VISIBLE_DEVICES: the slowest sets the pace"},
    GpuThreshold{GpuRule::kDrivers, "gpu-drivers", "GPUs with different drivers in the node", 0, "", Severity::kWarning,
                 "reboot the node, so that one driver serves all GPUs"},
    GpuThreshold{GpuRule::kXidUnhealthy, "gpu-xid", "an Xid after which a GPU is unfit, since the job began", 0, "",
                 Severity::kFatal,
                 "nvidia-smi --gpu-reset -i N, or reboot the node; if the Xid comes back, have the GPU replaced"},
    GpuThreshold{
        GpuRule::kXidSuspect, "gpu-xid-suspect", "an Xid after which a GPU works on, since the job began", 0, "",
        Severity::kWarning,
        "see what was affected: dmesg | grep Xid; nvidia-smi --gpu-reset -i N as soon as nothing runs on the GPU"},
    GpuThreshold{GpuRule::kXidOld, "gpu-xid-old", "such an Xid in the kernel log from before the job began", 0, "",
                 Severity::kNote, "if the GPU was not reset since then: nvidia-smi --gpu-reset -i N"},
    GpuThreshold{GpuRule::kXidUnknown, "gpu-xid-other", "an Xid that elastic-run does not know, since the job began", 0,
                 "", Severity::kNote, "look it up in NVIDIA's Xid catalog: docs.nvidia.com/deploy/xid-errors"},
    GpuThreshold{GpuRule::kNodesModel, "nodes-gpu", "a GPU model other than most nodes have", 0, "", Severity::kWarning,
                 "use nodes of one kind: the slowest sets the pace"},
    GpuThreshold{GpuRule::kNodesDriver, "nodes-driver", "an NVIDIA driver other than most nodes have", 0, "",
                 Severity::kWarning, "install the same driver on all nodes: nvidia-smi"},
    GpuThreshold{GpuRule::kNodesCuda, "nodes-cuda", "a driver for a CUDA version other than most nodes have", 0, "",
                 Severity::kWarning, "install the same driver on all nodes, and cuda-compat on all or on none"},
    GpuThreshold{GpuRule::kNodesNccl, "nodes-nccl", "an NCCL other than most nodes have", 0, "", Severity::kWarning,
                 "use the same image or Python environment on all nodes, or name the library: --nccl-lib"},
    GpuThreshold{GpuRule::kNodesCublaslt, "nodes-cublaslt", "a cuBLASLt other than most nodes have", 0, "",
                 Severity::kWarning, "use the same image or Python environment on all nodes"},
};

constexpr const GpuThreshold& threshold(GpuRule rule) { return kGpuThresholds[static_cast<std::size_t>(rule)]; }

static_assert(in_order_of_rules(kGpuThresholds, GpuRule::kNodesCublaslt));

}  // namespace elastic::health
