#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

// What was read about a host at one moment. An optional without a value is not known: a container may hide it.
namespace elastic::health {

// The value of a limit that is not set.
inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// The soft limits of the workers.
struct WorkerLimits {
  std::optional<std::uint64_t> locked_bytes = {};  // RLIMIT_MEMLOCK
  std::optional<std::uint64_t> open_files = {};    // RLIMIT_NOFILE
};

// The size of a file system or a memory, and what is free in it.
struct Room {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;  // for a user without privileges; in memory, what the kernel can reclaim counts as free
};

struct NetworkInterface {
  std::string name;
  std::optional<bool> is_up = {};  // whether it has a link
  std::optional<std::int64_t> speed_mbps = {};
  std::optional<std::uint64_t> errors = {};  // of receiving and sending, since the interface exists
  bool is_virtual = false;                   // it has no device: a bridge, a bond, a veth
  bool is_loopback = false;
  std::string kind = {};  // "0x15b3:0x1017", vendor and device; empty where it has none
};

// The path to a PCI device: the host bridge, the bridges below it and the device itself, as sysfs names them
// ("pci0000:17", "0000:17:01.0", "0000:18:00.0").
struct PciPath {
  std::vector<std::string> nodes = {};  // empty: not known
  std::optional<int> numa_node = {};
};

struct InfinibandPort {
  std::string device;  // "mlx5_0"
  int port = 0;
  std::string state = {};       // "ACTIVE"
  std::string phys_state = {};  // "LinkUp"
  std::string rate = {};        // "100 Gb/sec (4X EDR)"
  std::string link_layer = {};  // "InfiniBand", "Ethernet"
  std::string kind = {};        // "0x15b3:0x1021", vendor and device; empty where it has none
  PciPath pci = {};
};

struct HostFacts {
  WorkerLimits limits = {};
  std::optional<bool> may_lock_all = {};  // CAP_IPC_LOCK: the limit of locked memory does not apply

  std::optional<Room> shm = {};
  std::optional<Room> log_disk = {};
  std::optional<std::uint64_t> log_inodes_free = {};
  std::optional<Room> memory = {};
  std::optional<Room> cgroup_memory = {};  // of our cgroup, or of the one above it that has the least left
  std::optional<Room> swap = {};

  std::optional<double> quota_cpus = {};  // the smallest CPU limit among our cgroup and those above it
  std::optional<int> online_cpus = {};
  std::optional<int> usable_cpus = {};  // in the affinity mask

  // Counters: only their rise from one moment to another says something.
  std::optional<std::uint64_t> throttled_periods = {};  // in which that limit throttled processes
  std::optional<std::uint64_t> throttled_us = {};       // the same as time, all CPUs together
  std::optional<std::uint64_t> heat_throttles = {};     // times that heat throttled a core, all cores together

  std::vector<NetworkInterface> interfaces = {};
  std::vector<InfinibandPort> infiniband_ports = {};
};

}  // namespace elastic::health
