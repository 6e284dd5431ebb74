#include "health/host/read_facts.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "health/host/read_infiniband.h"
#include "health/host/system_files.h"
#include "src/base/text.h"
#include "src/process/cgroup.h"

namespace elastic::health {
namespace {

namespace fs = std::filesystem;
using process::own_cgroup_levels;
using process::path_in;

constexpr std::size_t kMostCpus = kSystemEntries;
constexpr int kLoopbackType = 772;  // ARPHRD_LOOPBACK
constexpr int kIpcLock = 14;        // CAP_IPC_LOCK

// What follows the key in the line that begins with it; empty if there is no such line.
std::string_view line_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(key)) return trim(line.substr(key.size()));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return {};
}

Count count_of(std::string_view text, std::string_view key) { return to_count(line_of(text, key)); }

// The number of bytes in a line such as "MemTotal:  65843020 kB".
Count bytes_of(std::string_view text, std::string_view key) {
  const std::string_view line = line_of(text, key);
  const Count kib = line.ends_with(" kB") ? to_count(line.substr(0, line.size() - 3)) : Count();
  return kib && *kib < kUnlimited / 1024 ? Count(*kib * 1024) : Count();
}

void add(Count& sum, const Count& part) {
  if (part) sum = sum.value_or(0) + *part;
}

// --- File systems and memory

struct Disk {
  Room room = {};
  Count inodes_free = {};
};

// A file system that does not count blocks or inodes reports 0 in all; the figures are then not known.
std::optional<Disk> disk_at(const std::string& path) {
  struct statvfs found = {};
  if (path.empty() || statvfs(path.c_str(), &found) != 0 || found.f_blocks == 0) return {};
  Disk disk{.room = {.total_bytes = found.f_blocks * found.f_frsize, .free_bytes = found.f_bavail * found.f_frsize}};
  if (found.f_files > 0) disk.inodes_free = found.f_favail;
  return disk;
}

std::optional<Room> room_of(const Count& total, const Count& free) {
  if (!total || !free || *total == 0 || *free > *total) return {};
  return Room{*total, *free};
}

void read_memory(const std::string& root, HostFacts& facts) {
  const std::string text = read_text(path_in(root, "/proc/meminfo"));
  facts.memory = room_of(bytes_of(text, "MemTotal:"), bytes_of(text, "MemAvailable:"));
  facts.swap = room_of(bytes_of(text, "SwapTotal:"), bytes_of(text, "SwapFree:"));
}

// --- Control groups

void read_cpu_quota(const std::string& root, HostFacts& facts) {
  facts.quota_cpus = process::cpu_quota(root);
  for (const std::string& level : own_cgroup_levels({}, root)) {
    const std::string counted = read_text(level + "/cpu.stat");
    add(facts.throttled_periods, count_of(counted, "nr_throttled "));
    add(facts.throttled_us, count_of(counted, "throttled_usec "));
  }
  for (const std::string& level : own_cgroup_levels("cpu", root)) {
    const std::string counted = read_text(level + "/cpu.stat");
    add(facts.throttled_periods, count_of(counted, "nr_throttled "));
    const Count nanoseconds = count_of(counted, "throttled_time ");
    if (nanoseconds) add(facts.throttled_us, *nanoseconds / 1000);
  }
}

// The kernel reclaims inactive pages of the page cache before it kills a process, so they count as free.
void take_memory_limit(const Count& limit, const Count& used, const Count& clearable, HostFacts& facts) {
  // cgroup version 1 writes a number larger than any memory where there is no limit.
  const bool is_none = !limit || (facts.memory && *limit > facts.memory->total_bytes);
  if (is_none || !used) return;
  const std::uint64_t kept = *used - std::min(*used, clearable.value_or(0));
  const auto room = room_of(limit, *limit - std::min(*limit, kept));
  if (room && (!facts.cgroup_memory || room->free_bytes < facts.cgroup_memory->free_bytes)) facts.cgroup_memory = room;
}

void read_memory_limit(const std::string& root, HostFacts& facts) {
  for (const std::string& level : own_cgroup_levels({}, root)) {
    const std::string counted = read_text(level + "/memory.stat");
    take_memory_limit(count_in(level + "/memory.max"), count_in(level + "/memory.current"),
                      count_of(counted, "inactive_file "), facts);
  }
  for (const std::string& level : own_cgroup_levels("memory", root)) {
    const std::string counted = read_text(level + "/memory.stat");
    take_memory_limit(count_in(level + "/memory.limit_in_bytes"), count_in(level + "/memory.usage_in_bytes"),
                      count_of(counted, "total_inactive_file "), facts);
  }
}

// --- CPUs

// The number of CPUs in a list such as "0-3,8".
std::optional<int> cpus_in(std::string_view list) {
  std::uint64_t cpus = 0;
  for (const std::string& part : split(trim(list), ',')) {
    const std::size_t dash = part.find('-');
    const Count first = to_count(std::string_view(part).substr(0, dash));
    const Count last = dash == std::string::npos ? first : to_count(std::string_view(part).substr(dash + 1));
    if (!first || !last || *last < *first || *last >= kMostCpus) return {};
    cpus += *last - *first + 1;
  }
  return cpus <= kMostCpus ? std::optional(static_cast<int>(cpus)) : std::nullopt;
}

void read_own_status(const std::string& root, HostFacts& facts) {
  const std::string text = read_text(path_in(root, "/proc/self/status"));
  facts.usable_cpus = cpus_in(line_of(text, "Cpus_allowed_list:"));
  // "CapEff:	000001ffffffffff"
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::string_view capabilities = line_of(text, "CapEff:");
  if (capabilities.size() != 16 || capabilities.find_first_not_of(kDigits) != std::string_view::npos) return;
  const std::size_t digit = kDigits.find(capabilities[15 - kIpcLock / 4]);
  facts.may_lock_all = (digit >> (kIpcLock % 4) & 1) != 0;
}

void read_cpus(const std::string& root, HostFacts& facts) {
  const std::string folder = path_in(root, "/sys/devices/system/cpu");
  facts.online_cpus = cpus_in(read_text(folder + "/online"));
  for (const std::string& name : names_in(folder)) {
    if (!name.starts_with("cpu")) continue;
    add(facts.heat_throttles, count_in(format("{}/{}/thermal_throttle/core_throttle_count", folder, name)));
  }
}

// --- Links

std::optional<bool> is_up(const std::string& folder) {
  const std::string state = read_word(folder + "/operstate");
  if (state == "up") return true;
  for (const char* other : {"down", "lowerlayerdown", "notpresent", "dormant", "testing"}) {
    if (state == other) return false;
  }
  // Drivers that do not report their state have "unknown" here.
  const Count carrier = count_in(folder + "/carrier");
  return carrier ? std::optional(*carrier == 1) : std::nullopt;
}

void read_interfaces(const std::string& root, HostFacts& facts) {
  const std::string all = path_in(root, "/sys/class/net");
  for (const std::string& name : names_in(all)) {
    const std::string folder = all + "/" + name;
    std::error_code error;
    if (!fs::is_directory(folder, error)) continue;  // bonding_masters
    NetworkInterface found{.name = name, .is_up = is_up(folder)};
    const auto speed = parse_int(read_text(folder + "/speed"));
    if (speed && *speed > 0) found.speed_mbps = speed;
    add(found.errors, count_in(folder + "/statistics/rx_errors"));
    add(found.errors, count_in(folder + "/statistics/tx_errors"));
    found.is_virtual = !is_there(folder + "/device");
    found.is_loopback = count_in(folder + "/type") == Count(kLoopbackType);
    const std::string vendor = read_word(folder + "/device/vendor");
    const std::string device = read_word(folder + "/device/device");
    if (!vendor.empty() && !device.empty()) found.kind = vendor + ":" + device;
    facts.interfaces.push_back(std::move(found));
  }
}

}  // namespace

HostFacts read_facts(const std::string& root, const WorkerLimits& limits, const std::string& log_directory) {
  HostFacts facts{.limits = limits};
  if (const auto disk = disk_at(path_in(root, "/dev/shm"))) facts.shm = disk->room;
  if (const auto disk = log_directory.empty() ? std::nullopt : disk_at(path_in(root, log_directory))) {
    facts.log_disk = disk->room;
    facts.log_inodes_free = disk->inodes_free;
  }
  read_memory(root, facts);
  read_memory_limit(root, facts);
  read_cpu_quota(root, facts);
  read_own_status(root, facts);
  read_cpus(root, facts);
  read_interfaces(root, facts);
  facts.infiniband_ports = read_infiniband(root);
  return facts;
}

std::optional<std::uint64_t> free_memory(const std::string& root) {
  HostFacts facts;
  read_memory(root, facts);
  read_memory_limit(root, facts);
  std::optional<std::uint64_t> out;
  for (const std::optional<Room>& room : {facts.memory, facts.cgroup_memory}) {
    if (room) out = std::min(out.value_or(room->free_bytes), room->free_bytes);
  }
  return out;
}

}  // namespace elastic::health
