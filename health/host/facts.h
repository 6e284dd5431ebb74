#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

// What was read of a host at one moment. What is not there is not known: a container may hide much.
namespace elastic::health {

// A limit that is none.
inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// The soft limits that the workers will have.
struct WorkerLimits {
  std::optional<std::uint64_t> locked_bytes = {};  // RLIMIT_MEMLOCK
  std::optional<std::uint64_t> open_files = {};    // RLIMIT_NOFILE
};

// Of a file system, or of memory.
struct Room {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;  // that a user may take; of memory, what the kernel could clear as well
};

struct NetworkInterface {
  std::string name;
  std::optional<bool> is_up = {};  // it has a link
  std::optional<std::int64_t> speed_mbps = {};
  std::optional<std::uint64_t> errors = {};  // received and sent, since it is there
  bool is_virtual = false;                   // no device stands behind it: a bridge, a bond, one end of a pair
  bool is_loopback = false;
  std::string kind = {};  // "0x15b3:0x1017", vendor and device; empty where it has none
};

// Where a PCI device hangs: the host bridge, the bridges below it and the device itself, as sysfs names them
// ("pci0000:17", "0000:17:01.0", "0000:18:00.0").
struct PciPath {
  std::vector<std::string> nodes = {};  // none: not known
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
  std::optional<bool> may_lock_all = {};  // CAP_IPC_LOCK: the limit of locked memory does not count

  std::optional<Room> shm = {};
  std::optional<Room> log_disk = {};
  std::optional<std::uint64_t> log_inodes_free = {};
  std::optional<Room> memory = {};
  std::optional<Room> cgroup_memory = {};  // of our cgroup or the one above it that has the least left
  std::optional<Room> swap = {};

  std::optional<double> quota_cpus = {};  // the least that our cgroup and those above it allow
  std::optional<int> online_cpus = {};
  std::optional<int> usable_cpus = {};  // of the affinity mask

  // Counters, of which only the rise from one moment to another says something.
  std::optional<std::uint64_t> throttled_periods = {};  // by that quota
  std::optional<std::uint64_t> throttled_us = {};       // of all CPUs together
  std::optional<std::uint64_t> heat_throttles = {};     // of all cores together

  std::vector<NetworkInterface> interfaces = {};
  std::vector<InfinibandPort> infiniband_ports = {};
};

}  // namespace elastic::health
