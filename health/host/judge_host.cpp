#include "health/host/judge_host.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <string_view>
#include <utility>

#include "src/base/check.h"
#include "src/base/figures.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

constexpr double limit(HostRule rule) { return threshold(rule).limit; }

double total_of(const Room& room) { return static_cast<double>(room.total_bytes); }
double free_of(const Room& room) { return static_cast<double>(room.free_bytes); }

// By how much a counter rose; 0 where that is not known, or where the counter was reset.
std::uint64_t rise(const std::optional<std::uint64_t>& before, const std::optional<std::uint64_t>& after) {
  return before && after && *after > *before ? *after - *before : 0;
}

std::string place_of(const InfinibandPort& port) {
  return format("/sys/class/infiniband/{}/ports/{}", printable(port.device), port.port);
}

// "200 Gb/sec (4X HDR)"
struct PortRate {
  std::optional<double> gbps = {};
  std::optional<std::int64_t> lanes = {};
};

PortRate port_rate(const std::string& text) {
  const std::size_t blank = std::min(text.find(' '), text.size());
  const std::size_t bracket = text.find('(');
  const std::size_t lanes_end = bracket == std::string::npos ? std::string::npos : text.find('X', bracket);
  PortRate rate{.gbps = parse_float(text.substr(0, blank))};
  if (lanes_end != std::string::npos) rate.lanes = parse_int(text.substr(bracket + 1, lanes_end - bracket - 1));
  return rate;
}

class HostJudge {
 public:
  HostJudge(const HostFacts& before, const HostFacts& after, const HostNeeds& needs)
      : before_(before), now_(after), needs_(needs) {}

  std::vector<Finding> judge() {
    judge_shm();
    judge_limits();
    judge_log_disk();
    judge_memory();
    judge_cpus();
    judge_rises();
    judge_interfaces();
    judge_ports();
    judge_rates();
    return std::move(findings_);
  }

 private:
  void tell(HostRule rule, std::string what, std::string where) {
    findings_.push_back(finding_of(threshold(rule), std::move(what), std::move(where)));
  }

  void judge_shm() {
    if (!now_.shm) return;
    constexpr const char* kWhere = "/dev/shm";
    const double total = total_of(*now_.shm);
    const double free = free_of(*now_.shm);
    const double wanted = limit(HostRule::kShmSize) * kMib * needs_.nproc;
    const double wanted_free = limit(HostRule::kShmLow) * kMib * needs_.nproc;
    const std::string left = format("{} free of {}", bytes_text(free), bytes_text(total));
    if (total < wanted) {
      tell(HostRule::kShmSize,
           format("/dev/shm is small: {}, wanted {} for {}", bytes_text(total), bytes_text(wanted),
                  counted(needs_.nproc, "worker")),
           kWhere);
    }
    if (free < limit(HostRule::kShmFull) * kMib) {
      tell(HostRule::kShmFull, format("/dev/shm is full: {}", left), kWhere);
    } else if (free < wanted_free && total >= wanted) {
      tell(HostRule::kShmLow,
           format("/dev/shm is nearly full: {}, wanted {} for {}", left, bytes_text(wanted_free),
                  counted(needs_.nproc, "worker")),
           kWhere);
    }
  }

  void judge_limits() {
    const auto& [locked, files] = now_.limits;
    const double wanted = limit(HostRule::kLockedMemory) * kMib;
    const bool is_bound = !now_.infiniband_ports.empty() && !now_.may_lock_all.value_or(false);
    if (locked && is_bound && static_cast<double>(*locked) < wanted) {
      tell(HostRule::kLockedMemory,
           format("workers may lock {} of memory, wanted {} for InfiniBand", bytes_text(static_cast<double>(*locked)),
                  bytes_text(wanted)),
           "ulimit -l");
    }
    if (files && static_cast<double>(*files) < limit(HostRule::kOpenFiles)) {
      tell(HostRule::kOpenFiles,
           format("workers may have {} open files, wanted {:.0f}", *files, limit(HostRule::kOpenFiles)), "ulimit -n");
    }
  }

  void judge_log_disk() {
    const std::string where = printable(needs_.log_directory);
    if (now_.log_disk) {
      const double free = free_of(*now_.log_disk);
      const double wanted = limit(HostRule::kLogDiskLow) * kGib;
      const std::string left = format("{} free, wanted {}", bytes_text(free), bytes_text(wanted));
      if (free < limit(HostRule::kLogDiskFull) * kMib) {
        tell(HostRule::kLogDiskFull, "the disk for logs is full: " + left, where);
      } else if (free < wanted) {
        tell(HostRule::kLogDiskLow, "the disk for logs is nearly full: " + left, where);
      }
    }
    if (now_.log_inodes_free && static_cast<double>(*now_.log_inodes_free) < limit(HostRule::kLogInodes)) {
      tell(HostRule::kLogInodes, "the disk for logs has no inode left for a file", where);
    }
  }

  void judge_room_in_memory(const std::optional<Room>& room, const std::string& of_what, const char* where) {
    if (!room || room->total_bytes == 0) return;
    const double share = 100 * free_of(*room) / total_of(*room);
    const std::string left = format("{} of {} available ({} %), wanted {:.0f} %", bytes_text(free_of(*room)),
                                    bytes_text(total_of(*room)), short_number(share), limit(HostRule::kMemoryLow));
    if (share < limit(HostRule::kMemoryOut)) {
      tell(HostRule::kMemoryOut, format("{} is exhausted: {}", of_what, left), where);
    } else if (share < limit(HostRule::kMemoryLow)) {
      tell(HostRule::kMemoryLow, format("{} is low: {}", of_what, left), where);
    }
  }

  void judge_memory() {
    judge_room_in_memory(now_.memory, "memory", "/proc/meminfo");
    judge_room_in_memory(now_.cgroup_memory, "the memory that the cgroup allows", "memory limit of the cgroup");
    if (!now_.swap || now_.swap->total_bytes == 0) return;
    const double total = total_of(*now_.swap);
    const double used = total - free_of(*now_.swap);
    const double share = 100 * used / total;
    if (share > limit(HostRule::kSwap) && used > kSwappedOutGib * kGib) {
      tell(HostRule::kSwap,
           format("much memory is swapped out: {} of {} ({} %), wanted at most {:.0f} %", bytes_text(used),
                  bytes_text(total), short_number(share), limit(HostRule::kSwap)),
           "/proc/swaps");
    }
  }

  void judge_cpus() {
    if (now_.quota_cpus && *now_.quota_cpus < limit(HostRule::kCpuQuota) * needs_.nproc) {
      tell(HostRule::kCpuQuota,
           format("the cgroup may use {:.3g} CPUs, wanted {} for {}", *now_.quota_cpus,
                  short_number(limit(HostRule::kCpuQuota) * needs_.nproc), counted(needs_.nproc, "worker")),
           "CPU limit of the cgroup");
    }
    if (!now_.usable_cpus) return;
    const bool is_bound = now_.online_cpus && *now_.usable_cpus < *now_.online_cpus;
    const HostRule rule = is_bound ? HostRule::kCpuBound : HostRule::kCpuFew;
    const double wanted = limit(rule) * needs_.nproc;
    if (*now_.usable_cpus >= wanted) return;
    const std::string there = is_bound
                                  ? format("{} of the host's {} CPUs may be used", *now_.usable_cpus, *now_.online_cpus)
                                  : format("the host has {}", counted(*now_.usable_cpus, "CPU"));
    tell(rule, format("{}, wanted {} for {}", there, short_number(wanted), counted(needs_.nproc, "worker")),
         is_bound ? "CPU affinity" : "/sys/devices/system/cpu");
  }

  void judge_rises() {
    const auto throttled_ms = static_cast<double>(rise(before_.throttled_us, now_.throttled_us)) / 1000;
    if (throttled_ms >= limit(HostRule::kCpuThrottled)) {
      tell(
          HostRule::kCpuThrottled,
          format("CPUs were throttled by the cgroup's limit for {:.0f} ms, in {} periods, during the check; "
                 "wanted less than {:.0f} ms",
                 throttled_ms, rise(before_.throttled_periods, now_.throttled_periods), limit(HostRule::kCpuThrottled)),
          "cpu.stat of the cgroup");
    }
    const std::uint64_t heat = rise(before_.heat_throttles, now_.heat_throttles);
    if (static_cast<double>(heat) >= limit(HostRule::kCpuHot)) {
      tell(HostRule::kCpuHot, format("heat throttled CPU cores {} during the check", counted(heat, "time")),
           "/sys/devices/system/cpu");
    }
  }

  const NetworkInterface* earlier(const std::string& name) const {
    const auto found = std::ranges::find(before_.interfaces, name, &NetworkInterface::name);
    return found == before_.interfaces.end() ? nullptr : &*found;
  }

  bool was_up(const NetworkInterface& interface) const {
    const NetworkInterface* then = earlier(interface.name);
    return then != nullptr && then->is_up == true;
  }

  // Where the interfaces that the node uses are not known, one that was down before the check may be unused, and one
  // that went down during the check is judged.
  bool is_used(const NetworkInterface& interface) const {
    if (interface.is_loopback) return false;
    if (!needs_.interfaces.empty()) return std::ranges::count(needs_.interfaces, interface.name) > 0;
    return !interface.is_virtual && (interface.is_up == true || was_up(interface));
  }

  void judge_interfaces() {
    std::vector<const NetworkInterface*> used;
    for (const NetworkInterface& interface : now_.interfaces) {
      if (is_used(interface)) used.push_back(&interface);
    }
    const bool all_down = std::ranges::all_of(used, [](const auto* interface) { return interface->is_up == false; });
    for (const NetworkInterface* interface : used) {
      const std::string where = printable(interface->name);
      if (interface->is_up == false) {
        tell(all_down ? HostRule::kLinksAllDown : HostRule::kLinkDown,
             format("{} {}", where, was_up(*interface) ? "lost its link during the check" : "has no link"), where);
        continue;
      }
      judge_speed(*interface);
      const NetworkInterface* then = earlier(interface->name);
      const std::uint64_t errors = then == nullptr ? 0 : rise(then->errors, interface->errors);
      if (static_cast<double>(errors) >= limit(HostRule::kLinkErrors)) {
        tell(HostRule::kLinkErrors, format("{} counted {} during the check", where, counted(errors, "error")), where);
      }
    }
  }

  // Virtual interfaces are not judged: the speed of one is a constant, or the sum of its members' speeds.
  void judge_speed(const NetworkInterface& interface) {
    if (interface.is_virtual || !interface.speed_mbps) return;
    const NetworkInterface* of_kind = nullptr;
    const NetworkInterface* of_all = nullptr;
    for (const NetworkInterface& other : now_.interfaces) {
      if (other.is_virtual || other.is_loopback || other.is_up != true || !other.speed_mbps) continue;
      if (of_all == nullptr || *other.speed_mbps > *of_all->speed_mbps) of_all = &other;
      if (interface.kind.empty() || other.kind != interface.kind) continue;
      if (of_kind == nullptr || *other.speed_mbps > *of_kind->speed_mbps) of_kind = &other;
    }
    const auto is_slower = [&](const NetworkInterface* other, HostRule rule) {
      return other != nullptr &&
             static_cast<double>(*other->speed_mbps) >= limit(rule) * static_cast<double>(*interface.speed_mbps);
    };
    const std::string where = printable(interface.name);
    if (is_slower(of_kind, HostRule::kLinkSlow)) {
      tell(HostRule::kLinkSlow,
           format("{} runs at {} Mbit/s, while {}, of the same model, runs at {} Mbit/s", where, *interface.speed_mbps,
                  printable(of_kind->name), *of_kind->speed_mbps),
           where);
    } else if (!needs_.interfaces.empty() && is_slower(of_all, HostRule::kLinkOther)) {
      tell(HostRule::kLinkOther,
           format("{} runs at {} Mbit/s, while {} runs at {} Mbit/s", where, *interface.speed_mbps,
                  printable(of_all->name), *of_all->speed_mbps),
           where);
    }
  }

  bool was_active(const InfinibandPort& port) const {
    return std::ranges::any_of(before_.infiniband_ports, [&](const InfinibandPort& then) {
      return then.device == port.device && then.port == port.port && then.state == "ACTIVE";
    });
  }

  // A port is compared with those of its link layer: a host that uses InfiniBand may have idle Ethernet ports.
  void judge_ports() {
    for (const InfinibandPort& port : now_.infiniband_ports) {
      if (port.state.empty() || port.state == "ACTIVE") continue;
      const bool others_are = std::ranges::any_of(now_.infiniband_ports, [&](const InfinibandPort& other) {
        return other.state == "ACTIVE" && other.link_layer == port.link_layer;
      });
      const bool is_off = port.phys_state == "Disabled";  // by an administrator
      const bool is_lost = was_active(port);
      const HostRule rule = is_lost || (others_are && !is_off) ? HostRule::kPortInactive : HostRule::kPortsAllInactive;
      tell(rule,
           format("port {} of {} is {}{}, wanted ACTIVE{}", port.port, printable(port.device), printable(port.state),
                  port.phys_state.empty() ? "" : format(" ({})", printable(port.phys_state)),
                  is_lost      ? " as before the check"
                  : others_are ? " like the others"
                               : ""),
           place_of(port));
    }
  }

  // A port is compared with those of its link layer and model: a host may have others, for storage.
  void judge_rates() {
    for (const InfinibandPort& port : now_.infiniband_ports) {
      std::map<std::string, std::size_t> by_rate;
      std::size_t all = 0;
      for (const InfinibandPort& other : now_.infiniband_ports) {
        if (other.state != "ACTIVE" || other.link_layer != port.link_layer || other.kind != port.kind) continue;
        ++by_rate[other.rate];
        ++all;
      }
      const auto usual = std::ranges::find_if(by_rate, [&](const auto& entry) { return 2 * entry.second > all; });
      if (port.state != "ACTIVE" || port.kind.empty() || usual == by_rate.end()) continue;
      const PortRate own = port_rate(port.rate);
      const PortRate wanted = port_rate(usual->first);
      if (!own.gbps || !wanted.gbps || *own.gbps >= *wanted.gbps) continue;
      const bool lacks_lanes = own.lanes && wanted.lanes && *own.lanes < *wanted.lanes;
      tell(lacks_lanes ? HostRule::kPortLanes : HostRule::kPortRate,
           format("port {} of {} runs at {}, while {} of {} ports of its model run at {}", port.port,
                  printable(port.device), printable(port.rate), usual->second, all, printable(usual->first)),
           place_of(port));
    }
  }

  const HostFacts& before_;
  const HostFacts& now_;
  const HostNeeds& needs_;
  std::vector<Finding> findings_;
};

// --- Clocks

// Offsets come from other nodes. Those above this are left out, so that no sum can overflow.
constexpr double kMostAheadMs = 1e15;

struct Neighbour {
  int node;
  double ahead_ms;
};
using Neighbours = std::map<int, std::vector<Neighbour>>;

// How far each clock is ahead of that of `first`, for all nodes that were compared with it directly or by way of
// others.
std::map<int, double> connected_clocks(int first, const Neighbours& neighbours) {
  std::map<int, double> ahead_ms{{first, 0}};
  std::deque<int> waiting{first};
  while (!waiting.empty()) {
    const int node = waiting.front();
    waiting.pop_front();
    for (const Neighbour& next : neighbours.at(node)) {
      if (ahead_ms.emplace(next.node, ahead_ms[node] + next.ahead_ms).second) waiting.push_back(next.node);
    }
  }
  return ahead_ms;
}

double middle_of(const std::map<int, double>& clocks) {
  std::vector<double> sorted;
  for (const auto& [node, ahead_ms] : clocks) sorted.push_back(ahead_ms);
  std::ranges::sort(sorted);
  return (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
}

Finding clock_finding(double away_ms, const std::string& of_whom) {
  const HostThreshold& row = threshold(HostRule::kClock);
  return finding_of(row,
                    format("its wall clock is {:.1f} s {} {}, wanted at most {:.1f} s", std::abs(away_ms) / 1000,
                           away_ms > 0 ? "ahead of" : "behind", of_whom, row.limit / 1000),
                    "wall clock");
}

}  // namespace

std::vector<Finding> judge_host(const HostFacts& before, const HostFacts& after, const HostNeeds& needs) {
  ELASTIC_CHECK(needs.nproc >= 1);
  return HostJudge(before, after, needs).judge();
}

std::vector<Finding> ToldFindings::new_ones(std::vector<Finding> found) {
  const auto key = [](const Finding& finding) { return std::tuple(finding.severity, finding.where, finding.remedy); };
  std::erase_if(found, [&](const Finding& finding) { return told_.contains(key(finding)); });
  for (const Finding& finding : found) told_.insert(key(finding));
  return found;
}

std::vector<NodeFinding> clock_findings(const std::vector<ClockOffset>& offsets) {
  Neighbours neighbours;
  for (const ClockOffset& offset : offsets) {
    if (!(std::abs(offset.ahead_ms) <= kMostAheadMs)) continue;
    neighbours[offset.against].push_back({offset.of, offset.ahead_ms});
    neighbours[offset.of].push_back({offset.against, -offset.ahead_ms});
  }
  std::map<int, Finding> found;
  std::map<int, double> seen;
  for (const auto& [first, unused] : neighbours) {
    if (seen.contains(first)) continue;
    const std::map<int, double> clocks = connected_clocks(first, neighbours);
    const double middle_ms = middle_of(clocks);
    for (const auto& [node, ahead_ms] : clocks) {
      const bool is_pair = clocks.size() == 2;
      const int other = clocks.begin()->first == node ? clocks.rbegin()->first : clocks.begin()->first;
      const double away_ms = ahead_ms - (is_pair ? clocks.at(other) : middle_ms);
      if (std::abs(away_ms) <= limit(HostRule::kClock)) continue;
      found.emplace(node, clock_finding(away_ms, is_pair ? format("node {}'s (one of the two is wrong)", other)
                                                         : format("the median of {} nodes", clocks.size())));
    }
    seen.insert(clocks.begin(), clocks.end());
  }
  std::vector<NodeFinding> findings;
  for (auto& [node, finding] : found) findings.push_back({node, std::move(finding)});
  return findings;
}

}  // namespace elastic::health
