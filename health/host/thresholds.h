#pragma once

#include <array>
#include <cstddef>

#include "health/messages/threshold.h"

// The rules by which a host is judged, in one table: the limits, how bad each finding is, and what to do.
namespace elastic::health {

// The rows of the table, in its order.
enum class HostRule {
  kShmSize,
  kShmLow,
  kShmFull,
  kLockedMemory,
  kOpenFiles,
  kLogDiskLow,
  kLogDiskFull,
  kLogInodes,
  kMemoryLow,
  kMemoryOut,
  kSwap,
  kCpuQuota,
  kCpuBound,
  kCpuFew,
  kCpuThrottled,
  kCpuHot,
  kLinkDown,
  kLinksAllDown,
  kLinkSlow,
  kLinkOther,
  kLinkErrors,
  kPortInactive,
  kPortsAllInactive,
  kPortLanes,
  kPortRate,
  kClock,
};

using HostThreshold = Threshold<HostRule>;

inline constexpr std::array kHostThresholds = {
    HostThreshold{HostRule::kShmSize, "shm-size", "size of /dev/shm less than", 64, "MiB for each worker",
                  Severity::kWarning,
                  "docker run --shm-size=16g or --ipc=host; in Kubernetes, an emptyDir with medium Memory at /dev/shm"},
    HostThreshold{HostRule::kShmLow, "shm-low", "free in /dev/shm less than", 16, "MiB for each worker",
                  Severity::kWarning, "remove files that ended jobs have left there: ls -l /dev/shm"},
    HostThreshold{HostRule::kShmFull, "shm-full", "free in /dev/shm less than", 1, "MiB", Severity::kFatal,
                  "remove files that ended jobs have left there: ls -l /dev/shm"},
    HostThreshold{HostRule::kLockedMemory, "memlock", "with InfiniBand: limit of locked memory less than", 64, "MiB",
                  Severity::kWarning,
                  "ulimit -l unlimited; docker run --ulimit memlock=-1; LimitMEMLOCK=infinity in a systemd unit"},
    HostThreshold{HostRule::kOpenFiles, "nofile", "limit of open files less than", 4096, "", Severity::kWarning,
                  "ulimit -n 65536; docker run --ulimit nofile=65536; LimitNOFILE=65536 in a systemd unit"},
    HostThreshold{HostRule::kLogDiskLow, "log-disk-low", "free on the disk for logs less than", 1, "GiB",
                  Severity::kWarning, "remove old logs, or choose another disk with --log-dir"},
    HostThreshold{HostRule::kLogDiskFull, "log-disk-full", "free on the disk for logs less than", 16, "MiB",
                  Severity::kFatal, "remove old logs, or choose another disk with --log-dir"},
    HostThreshold{HostRule::kLogInodes, "log-inodes", "free inodes on the disk for logs fewer than", 1, "",
                  Severity::kFatal, "remove small files (df -i), or choose another disk with --log-dir"},
    HostThreshold{HostRule::kMemoryLow, "memory-low", "available memory less than", 5, "% of all", Severity::kWarning,
                  "see which processes use it: ps aux --sort=-rss; in a container, raise the memory limit"},
    HostThreshold{HostRule::kMemoryOut, "memory-out", "available memory less than", 1, "% of all", Severity::kFatal,
                  "see which processes use it: ps aux --sort=-rss; in a container, raise the memory limit"},
    HostThreshold{HostRule::kSwap, "swap", "more than 1 GiB swapped out, and more than", 25, "% of the swap space",
                  Severity::kWarning, "end the processes that use the memory: ps aux --sort=-rss"},
    HostThreshold{HostRule::kCpuQuota, "cpu-limit", "CPU limit of the cgroup less than", 1, "CPU for each worker",
                  Severity::kWarning,
                  "raise it: docker run --cpus, resources.limits.cpu in Kubernetes; or start fewer workers"},
    HostThreshold{HostRule::kCpuBound, "cpu-affinity", "the CPU affinity allows less than", 1, "CPU for each worker",
                  Severity::kWarning, "widen the binding: taskset, docker run --cpuset-cpus, srun --cpus-per-task"},
    HostThreshold{HostRule::kCpuFew, "cpu-few", "CPUs of the host fewer than", 1, "CPU for each worker",
                  Severity::kNote, "start fewer workers on this host: --nproc-per-node"},
    HostThreshold{HostRule::kCpuThrottled, "cpu-throttled", "CPUs throttled by the limit during the check for at least",
                  100, "ms", Severity::kWarning,
                  "raise the CPU limit: docker run --cpus, resources.limits.cpu in Kubernetes"},
    HostThreshold{HostRule::kCpuHot, "cpu-hot", "times that heat throttled a core during the check, at least", 1, "",
                  Severity::kWarning, "check the host's cooling and power: sensors, ipmitool sdr"},
    HostThreshold{HostRule::kLinkDown, "link-down", "no link at an interface that is used", 0, "", Severity::kWarning,
                  "check the cable, the switch port and ip link show"},
    HostThreshold{HostRule::kLinksAllDown, "links-down", "no link at any interface that is used", 0, "",
                  Severity::kFatal, "check the cable, the switch port and ip link show"},
    HostThreshold{HostRule::kLinkSlow, "link-slow",
                  "the host's fastest interface of the same model faster by a factor of", 10, "", Severity::kWarning,
                  "check what was negotiated: ethtool; then the cable, the module and the switch port"},
    HostThreshold{HostRule::kLinkOther, "link-other", "another interface faster than the used one by a factor of", 10,
                  "", Severity::kNote,
                  "let the job use the faster one: --local-addr, NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME"},
    HostThreshold{
        HostRule::kLinkErrors, "link-errors", "errors of a used interface during the check, at least", 1, "",
        Severity::kWarning,
        "see which errors: ethtool -S, ip -s link show; then check the cable, the module and the switch port"},
    HostThreshold{HostRule::kPortInactive, "ib-port", "an InfiniBand port not ACTIVE while others are", 0, "",
                  Severity::kWarning,
                  "check the cable and the switch port: ibstat, iblinkinfo; INIT means that no subnet manager runs"},
    HostThreshold{HostRule::kPortsAllInactive, "ib-ports", "no InfiniBand port ACTIVE, or this one disabled", 0, "",
                  Severity::kNote, "if InfiniBand should be used: ibstat; INIT means that no subnet manager runs"},
    HostThreshold{HostRule::kPortLanes, "ib-lanes",
                  "an active InfiniBand port with fewer lanes than most ports of its model", 0, "", Severity::kWarning,
                  "a lane has failed: reseat the cable, then replace it: iblinkinfo, mlxlink -d DEVICE"},
    HostThreshold{HostRule::kPortRate, "ib-rate", "an active InfiniBand port slower than most ports of its model", 0,
                  "", Severity::kNote,
                  "if it should be as fast as the others, check the cable, the module and the switch port: ibstat, "
                  "iblinkinfo, mlxlink -d DEVICE"},
    HostThreshold{HostRule::kClock, "clock", "wall clock differs from the other nodes' by more than", 1000, "ms",
                  Severity::kWarning, "synchronize the clock: systemctl enable --now chronyd; chronyc tracking"},
};

// The second limit of "swap", since it is no problem if a small swap space is full.
inline constexpr double kSwappedOutGib = 1;

constexpr const HostThreshold& threshold(HostRule rule) { return kHostThresholds[static_cast<std::size_t>(rule)]; }

static_assert(in_order_of_rules(kHostThresholds, HostRule::kClock));

}  // namespace elastic::health
