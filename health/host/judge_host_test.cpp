#include "health/host/judge_host.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>

using namespace elastic::health;

namespace {

constexpr std::uint64_t kMib = 1024 * 1024;
constexpr std::uint64_t kGib = 1024 * kMib;

// A host without any finding, for four workers.
HostFacts good_host() {
  HostFacts host;
  host.limits = {.locked_bytes = kUnlimited, .open_files = 65536};
  host.may_lock_all = false;
  host.shm = Room{kGib, kGib};
  host.log_disk = Room{100 * kGib, 50 * kGib};
  host.log_inodes_free = 1000000;
  host.memory = Room{64 * kGib, 60 * kGib};
  host.cgroup_memory = Room{32 * kGib, 30 * kGib};
  host.swap = Room{8 * kGib, 8 * kGib};
  host.quota_cpus = 8;
  host.online_cpus = 8;
  host.usable_cpus = 8;
  host.throttled_periods = 100;
  host.throttled_us = 5'000'000;
  host.heat_throttles = 3;
  host.interfaces = {
      {.name = "lo", .is_up = true, .is_virtual = true, .is_loopback = true},
      {.name = "docker0", .is_up = false, .is_virtual = true},
      {.name = "eth0", .is_up = true, .speed_mbps = 25000, .errors = 7, .kind = "a:1"},
      {.name = "eth1", .is_up = true, .speed_mbps = 25000, .errors = 0, .kind = "a:1"},
      {.name = "eth2", .is_up = false, .kind = "a:1"},
  };
  host.infiniband_ports = {{"mlx5_0", 1, "ACTIVE", "LinkUp", "100 Gb/sec (4X EDR)", "InfiniBand"}};
  return host;
}

const HostNeeds kFourWorkers{.nproc = 4, .log_directory = "/logs"};

using Change = std::function<void(HostFacts&)>;

std::vector<Finding> changed(const Change& change, const HostNeeds& needs = kFourWorkers) {
  HostFacts after = good_host();
  change(after);
  return judge_host(good_host(), after, needs);
}

// Checks that there is one finding, with the severity and the remedy of the rule.
void check_only(const std::vector<Finding>& findings, HostRule rule, const std::string& what,
                const std::string& where) {
  CAPTURE(what);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == threshold(rule).severity);
  CHECK(findings[0].what == what);
  CHECK(findings[0].where == where);
  CHECK(findings[0].remedy == threshold(rule).remedy);
}

NetworkInterface& interface(HostFacts& host, const std::string& name) {
  return *std::ranges::find(host.interfaces, name, &NetworkInterface::name);
}

}  // namespace

TEST_CASE("nothing is found at a good host, and nothing where nothing is known") {
  CHECK(changed([](HostFacts&) {}).empty());
  CHECK(judge_host({}, {}, kFourWorkers).empty());
  CHECK(judge_host(good_host(), {}, kFourWorkers).empty());
  CHECK(judge_host({}, good_host(), {.nproc = 4, .interfaces = {"eth0", "eth9"}}).empty());
}

TEST_CASE("every row of the table has a name of its own, says when it is told, and what to do") {
  for (const HostThreshold& row : kHostThresholds) {
    CAPTURE(row.name);
    CHECK(!row.when.empty());
    CHECK(!row.remedy.empty());
    CHECK(std::ranges::count(kHostThresholds, row.name, &HostThreshold::name) == 1);
  }
}

TEST_CASE("/dev/shm has to have 64 MiB for each worker, a quarter of it free, and more than nothing") {
  const auto shm = [](std::uint64_t total, std::uint64_t free) {
    return changed([=](HostFacts& host) { host.shm = Room{total, free}; });
  };
  CHECK(shm(256 * kMib, 256 * kMib).empty());
  check_only(shm(64 * kMib, 64 * kMib), HostRule::kShmSize, "/dev/shm is small: 64 MiB, wanted 256 MiB for 4 workers",
             "/dev/shm");
  CHECK(shm(256 * kMib - 1, 256 * kMib - 1).size() == 1);
  CHECK(shm(kGib, 64 * kMib).empty());
  check_only(shm(kGib, 63 * kMib), HostRule::kShmLow,
             "/dev/shm is nearly full: 63 MiB free of 1 GiB, wanted 64 MiB for 4 workers", "/dev/shm");
  CHECK(shm(kGib, kMib).front().severity == Severity::kWarning);
  check_only(shm(kGib, kMib - 1024), HostRule::kShmFull, "/dev/shm is full: 1023 KiB free of 1 GiB", "/dev/shm");
  const auto small_and_full = shm(64 * kMib, 0);
  REQUIRE(small_and_full.size() == 2);
  CHECK(small_and_full[1].severity == Severity::kFatal);
  CHECK(shm(64 * kMib, 32 * kMib).size() == 1);
}

TEST_CASE("locked memory is wanted where InfiniBand is, and not of who may lock all") {
  const auto locked = [](std::uint64_t bytes) { return [=](HostFacts& host) { host.limits.locked_bytes = bytes; }; };
  CHECK(changed(locked(64 * kMib)).empty());
  check_only(changed(locked(8 * kMib)), HostRule::kLockedMemory,
             "workers may lock 8 MiB of memory, wanted 64 MiB for InfiniBand", "ulimit -l");
  CHECK(changed(locked(64 * kMib - 1)).size() == 1);
  const auto but = [&](const Change& more) {
    return changed([&](HostFacts& host) {
      locked(0)(host);
      more(host);
    });
  };
  CHECK(but([](HostFacts& host) { host.may_lock_all = true; }).empty());
  CHECK(but([](HostFacts& host) { host.may_lock_all.reset(); }).size() == 1);
  CHECK(but([](HostFacts& host) { host.infiniband_ports.clear(); }).empty());
}

TEST_CASE("workers have to be able to open 4096 files") {
  const auto files = [](std::uint64_t count) {
    return changed([=](HostFacts& host) { host.limits.open_files = count; });
  };
  CHECK(files(4096).empty());
  CHECK(files(kUnlimited).empty());
  check_only(files(4095), HostRule::kOpenFiles, "workers may have 4095 open files, wanted 4096", "ulimit -n");
}

TEST_CASE("the disk for logs has to have room, and inodes") {
  const auto disk = [](std::uint64_t free) {
    return changed([=](HostFacts& host) { host.log_disk = Room{100 * kGib, free}; });
  };
  CHECK(disk(kGib).empty());
  check_only(disk(512 * kMib), HostRule::kLogDiskLow, "the disk for logs is nearly full: 512 MiB free, wanted 1 GiB",
             "/logs");
  CHECK(disk(kGib - 1).size() == 1);
  CHECK(disk(16 * kMib).front().severity == Severity::kWarning);
  check_only(disk(1000), HostRule::kLogDiskFull, "the disk for logs is full: 1000 bytes free, wanted 1 GiB", "/logs");
  CHECK(disk(16 * kMib - 1).front().severity == Severity::kFatal);
  CHECK(changed([](HostFacts& host) { host.log_inodes_free = 1; }).empty());
  check_only(changed([](HostFacts& host) { host.log_inodes_free = 0; }), HostRule::kLogInodes,
             "the disk for logs has no inode left for a file", "/logs");
}

TEST_CASE("a twentieth of the memory has to be available, on the host and in the cgroup") {
  const auto memory = [](std::uint64_t free) {
    return changed([=](HostFacts& host) { host.memory = Room{1000 * kMib, free}; });
  };
  CHECK(memory(50 * kMib).empty());
  check_only(memory(45 * kMib), HostRule::kMemoryLow, "memory is low: 45 MiB of 1000 MiB available (4.5 %), wanted 5 %",
             "/proc/meminfo");
  CHECK(memory(10 * kMib).front().severity == Severity::kWarning);
  check_only(memory(5 * kMib), HostRule::kMemoryOut,
             "memory is exhausted: 5 MiB of 1000 MiB available (0.5 %), wanted 5 %", "/proc/meminfo");
  CHECK(memory(10 * kMib - 1).front().severity == Severity::kFatal);
  CHECK(changed([](HostFacts& host) { host.cgroup_memory = Room{100 * kMib, 5 * kMib}; }).empty());
  check_only(changed([](HostFacts& host) {
               host.cgroup_memory = Room{100 * kMib, 4 * kMib};
             }),
             HostRule::kMemoryLow,
             "the memory that the cgroup allows is low: 4 MiB of 100 MiB available (4 %), wanted 5 %",
             "memory limit of the cgroup");
}

TEST_CASE("a quarter of the swap space and 1 GiB may be in use; more of both is told") {
  const auto swap = [](std::uint64_t total, std::uint64_t used) {
    return changed([=](HostFacts& host) { host.swap = Room{total, total - used}; });
  };
  CHECK(swap(0, 0).empty());
  CHECK(swap(kGib, kGib).empty());
  CHECK(swap(8 * kGib, 2 * kGib).empty());
  check_only(swap(8 * kGib, 4 * kGib), HostRule::kSwap,
             "much memory is swapped out: 4 GiB of 8 GiB (50 %), wanted at most 25 %", "/proc/swaps");
  CHECK(swap(8 * kGib, 2 * kGib + 1).size() == 1);
  CHECK(swap(2 * kGib, kGib + 1).size() == 1);
}

TEST_CASE("every worker has to have a CPU, by the cgroup's limit and by the affinity mask") {
  const auto quota = [](double cpus) { return changed([=](HostFacts& host) { host.quota_cpus = cpus; }); };
  CHECK(quota(4).empty());
  check_only(quota(1.5), HostRule::kCpuQuota, "the cgroup may use 1.5 CPUs, wanted 4 for 4 workers",
             "CPU limit of the cgroup");
  CHECK(quota(3.99).size() == 1);
  const auto cpus = [](std::optional<int> online, int usable) {
    return changed([=](HostFacts& host) {
      host.online_cpus = online;
      host.usable_cpus = usable;
    });
  };
  CHECK(cpus(8, 4).empty());
  check_only(cpus(8, 3), HostRule::kCpuBound, "3 of the host's 8 CPUs may be used, wanted 4 for 4 workers",
             "CPU affinity");
  CHECK(cpus(4, 4).empty());
  check_only(cpus(2, 2), HostRule::kCpuFew, "the host has 2 CPUs, wanted 4 for 4 workers", "/sys/devices/system/cpu");
  CHECK(cpus({}, 1).size() == 1);
}

TEST_CASE("CPUs that are held back or too hot during the check are told; what was before is not") {
  const auto throttled = [](std::uint64_t more_us) {
    return changed([=](HostFacts& host) {
      host.throttled_us = 5'000'000 + more_us;
      host.throttled_periods = 104;
    });
  };
  CHECK(throttled(99'999).empty());
  check_only(throttled(100'000), HostRule::kCpuThrottled,
             "CPUs were throttled by the cgroup's limit for 100 ms, in 4 periods, during the check; "
             "wanted less than 100 ms",
             "cpu.stat of the cgroup");
  CHECK(changed([](HostFacts& host) { host.throttled_us = 0; }).empty());
  CHECK(changed([](HostFacts& host) { host.heat_throttles = 2; }).empty());
  check_only(changed([](HostFacts& host) { host.heat_throttles = 4; }), HostRule::kCpuHot,
             "heat throttled CPU cores 1 time during the check", "/sys/devices/system/cpu");
}

TEST_CASE("an interface that is used has to have a link; one that nobody uses may be down") {
  const auto down = [](const std::vector<std::string>& names, const std::vector<std::string>& used) {
    return changed(
        [&](HostFacts& host) {
          for (const std::string& name : names) interface(host, name).is_up = false;
        },
        {.nproc = 4, .interfaces = used});
  };
  check_only(down({"eth1"}, {}), HostRule::kLinkDown, "eth1 lost its link during the check", "eth1");
  CHECK(down({"eth1"}, {"eth0"}).empty());
  check_only(down({}, {"eth0", "eth2"}), HostRule::kLinkDown, "eth2 has no link", "eth2");
  check_only(down({}, {"eth2"}), HostRule::kLinksAllDown, "eth2 has no link", "eth2");
  CHECK(down({"eth0", "eth1"}, {}).size() == 2);
  CHECK(down({"eth0", "eth1"}, {}).back().severity == Severity::kFatal);
}

TEST_CASE("virtual interfaces and the loopback are not judged, unless a virtual one is used") {
  const Change broken = [](HostFacts& host) {
    for (const char* name : {"lo", "docker0"}) {
      interface(host, name).is_up = false;
      interface(host, name).errors = 1000;
      interface(host, name).speed_mbps = 1;
    }
  };
  CHECK(changed(broken).empty());
  CHECK(changed(broken, {.nproc = 4, .interfaces = {"eth0", "lo"}}).empty());
  check_only(changed(broken, {.nproc = 4, .interfaces = {"eth0", "docker0"}}), HostRule::kLinkDown,
             "docker0 has no link", "docker0");
  HostFacts before = good_host();
  HostFacts after = good_host();
  interface(before, "docker0").is_up = interface(after, "docker0").is_up = true;
  interface(after, "docker0").is_up = false;
  CHECK(judge_host(before, after, kFourWorkers).empty());
}

TEST_CASE("a link of a tenth of its like's speed is told; of another kind only if it is the one that is used") {
  const auto speed = [](std::int64_t mbps, const std::string& kind, const std::vector<std::string>& used) {
    return changed(
        [&](HostFacts& host) {
          interface(host, "eth1").speed_mbps = mbps;
          interface(host, "eth1").kind = kind;
        },
        {.nproc = 4, .interfaces = used});
  };
  CHECK(speed(2501, "a:1", {}).empty());
  check_only(speed(2500, "a:1", {}), HostRule::kLinkSlow,
             "eth1 runs at 2500 Mbit/s, while eth0, of the same model, runs at 25000 Mbit/s", "eth1");
  CHECK(speed(1000, "a:1", {"eth1"}).size() == 1);
  CHECK(speed(1000, "a:1", {"eth0"}).empty());
  CHECK(speed(1000, "b:2", {}).empty());
  CHECK(speed(1000, "", {}).empty());
  check_only(speed(1000, "b:2", {"eth1"}), HostRule::kLinkOther,
             "eth1 runs at 1000 Mbit/s, while eth0 runs at 25000 Mbit/s", "eth1");
  CHECK(speed(2501, "b:2", {"eth1"}).empty());
}

TEST_CASE("a link is held to others that have a link, and to no virtual one") {
  const auto slow_beside = [](const Change& change) {
    return changed([&](HostFacts& host) {
      interface(host, "eth1").speed_mbps = 1000;
      change(host);
    });
  };
  CHECK(slow_beside([](HostFacts&) {}).size() == 1);
  CHECK(slow_beside([](HostFacts& host) { interface(host, "eth0").is_virtual = true; }).empty());
  CHECK(slow_beside([](HostFacts& host) { interface(host, "eth0").is_up.reset(); }).empty());
  CHECK(slow_beside([](HostFacts& host) {
          for (auto& each : host.interfaces) each.kind.clear();
        }).empty());
}

TEST_CASE("errors of a used interface are told if they rose during the check") {
  const auto errors = [](std::optional<std::uint64_t> count) {
    return changed([=](HostFacts& host) { interface(host, "eth0").errors = count; });
  };
  CHECK(errors(7).empty());
  CHECK(errors(0).empty());
  CHECK(errors({}).empty());
  check_only(errors(8), HostRule::kLinkErrors, "eth0 counted 1 error during the check", "eth0");
  const HostFacts after = good_host();
  HostFacts before = after;
  before.interfaces.clear();
  CHECK(judge_host(before, after, kFourWorkers).empty());
}

TEST_CASE("an InfiniBand port that is not active is a warning where others are, and a note where none is") {
  const auto ports = [](std::vector<InfinibandPort> all) {
    return changed([&](HostFacts& host) { host.infiniband_ports = std::move(all); });
  };
  const InfinibandPort good{"mlx5_0", 1, "ACTIVE", "LinkUp", "100 Gb/sec (4X EDR)", "InfiniBand"};
  const InfinibandPort down{"mlx5_1", 2, "DOWN", "Polling", "", "InfiniBand"};
  const InfinibandPort off{"mlx5_1", 2, "DOWN", "Disabled", "", "InfiniBand"};
  const InfinibandPort ethernet{"mlx5_2", 1, "DOWN", "Polling", "", "Ethernet"};
  const std::string where = "/sys/class/infiniband/mlx5_1/ports/2";
  check_only(ports({good, down}), HostRule::kPortInactive,
             "port 2 of mlx5_1 is DOWN (Polling), wanted ACTIVE like the others", where);
  check_only(ports({down}), HostRule::kPortsAllInactive, "port 2 of mlx5_1 is DOWN (Polling), wanted ACTIVE", where);
  check_only(ports({good, off}), HostRule::kPortsAllInactive,
             "port 2 of mlx5_1 is DOWN (Disabled), wanted ACTIVE like the others", where);
  CHECK(ports({good, ethernet}).front().severity == Severity::kNote);
  CHECK(ports({good, {.device = "mlx5_1", .port = 1}}).empty());
  CHECK(ports({good, down, {"mlx5_3", 1, "INIT", "LinkUp", "", "InfiniBand"}}).size() == 2);
  check_only(ports({{"mlx5_0", 1, "INIT", "LinkUp", "", "InfiniBand"}}), HostRule::kPortInactive,
             "port 1 of mlx5_0 is INIT (LinkUp), wanted ACTIVE as before the check",
             "/sys/class/infiniband/mlx5_0/ports/1");
}

TEST_CASE("an active port that is slower than most of its kind is a note, one that has lost lanes a warning") {
  const auto rates = [](const std::vector<std::string>& all, const std::string& last_kind = "a:1") {
    return changed([&](HostFacts& host) {
      host.infiniband_ports.clear();
      for (const std::string& rate : all) {
        host.infiniband_ports.push_back({.device = "mlx5_" + std::to_string(host.infiniband_ports.size()),
                                         .port = 1,
                                         .state = "ACTIVE",
                                         .rate = rate,
                                         .link_layer = "InfiniBand",
                                         .kind = "a:1"});
      }
      host.infiniband_ports.back().kind = last_kind;
    });
  };
  const std::string usual = "400 Gb/sec (4X NDR)";
  CHECK(rates({usual, usual, usual}).empty());
  check_only(rates({usual, usual, "200 Gb/sec (2X NDR)"}), HostRule::kPortLanes,
             "port 1 of mlx5_2 runs at 200 Gb/sec (2X NDR), while 2 of 3 ports of its model run at 400 Gb/sec (4X NDR)",
             "/sys/class/infiniband/mlx5_2/ports/1");
  check_only(rates({usual, usual, "200 Gb/sec (4X HDR)"}), HostRule::kPortRate,
             "port 1 of mlx5_2 runs at 200 Gb/sec (4X HDR), while 2 of 3 ports of its model run at 400 Gb/sec (4X NDR)",
             "/sys/class/infiniband/mlx5_2/ports/1");
  CHECK(threshold(HostRule::kPortLanes).severity == Severity::kWarning);
  CHECK(threshold(HostRule::kPortRate).severity == Severity::kNote);
  CHECK(rates({usual, "200 Gb/sec (2X NDR)"}).empty());
  CHECK(rates({usual, usual, "800 Gb/sec (4X XDR)"}).empty());
  CHECK(rates({usual, usual, "nonsense"}).empty());
  CHECK(rates({usual, usual, "200 Gb/sec (2X NDR)"}, "a:2").empty());
  CHECK(rates({usual, usual, "200 Gb/sec (2X NDR)"}, "").empty());
}

TEST_CASE("a clock that is more than a second away from the others' is told, of that node alone") {
  // Node 3 is compared with one node only, the others with two and more.
  const auto ring = [](double ahead_ms) {
    return clock_findings({{1, 0, 10}, {2, 1, -10}, {3, 2, ahead_ms}, {4, 2, 3}, {0, 4, 0}});
  };
  CHECK(ring(1000).empty());
  CHECK(ring(-1000).empty());
  const auto ahead = ring(5000);
  REQUIRE(ahead.size() == 1);
  CHECK(ahead[0].node == 3);
  CHECK(ahead[0].finding.severity == Severity::kWarning);
  CHECK(ahead[0].finding.what == "its wall clock is 5.0 s ahead of the median of 5 nodes, wanted at most 1.0 s");
  CHECK(ahead[0].finding.remedy == threshold(HostRule::kClock).remedy);
  CHECK(ring(1011).size() == 1);
  REQUIRE(ring(-5000).size() == 1);
  CHECK(ring(-5000)[0].finding.what == "its wall clock is 5.0 s behind the median of 5 nodes, wanted at most 1.0 s");
}

TEST_CASE("of two nodes whose clocks differ both are told, and groups that never met are judged apart") {
  CHECK(clock_findings({{0, 1, 1000}}).empty());
  CHECK(clock_findings({{0, 1, 3}, {5, 6, 1500}}).size() == 2);
  const auto two = clock_findings({{0, 1, 1500}, {5, 6, 3}});
  REQUIRE(two.size() == 2);
  CHECK(two[0].node == 0);
  CHECK(two[0].finding.what ==
        "its wall clock is 1.5 s ahead of node 1's (one of the two is wrong), wanted at most 1.0 s");
  CHECK(two[1].node == 1);
  CHECK(two[1].finding.what ==
        "its wall clock is 1.5 s behind node 0's (one of the two is wrong), wanted at most 1.0 s");
}

TEST_CASE("offsets that no clock can have, or of a node to itself, count for nothing") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const double endless = std::numeric_limits<double>::infinity();
  CHECK(clock_findings({}).empty());
  CHECK(clock_findings({{0, 1, none}, {1, 2, endless}, {2, 3, -endless}, {3, 4, 1e300}, {4, 4, 5000}}).empty());
  CHECK(clock_findings({{-1, 2147483647, 5000}}).size() == 2);
}

TEST_CASE("of a host that is looked at again only what is new is told, and nothing twice for another figure") {
  const HostFacts before = good_host();
  ToldFindings told;
  CHECK(told.new_ones(judge_host(before, before, kFourWorkers)).empty());
  HostFacts now = before;
  const auto errors_of = [&now](const std::string& name) -> std::uint64_t& {
    return *std::ranges::find(now.interfaces, name, &NetworkInterface::name)->errors;
  };
  errors_of("eth0") += 3;
  const auto first = told.new_ones(judge_host(before, now, kFourWorkers));
  REQUIRE(first.size() == 1);
  CHECK(first[0].what == "eth0 counted 3 errors during the check");
  errors_of("eth0") += 4;
  CHECK(told.new_ones(judge_host(before, now, kFourWorkers)).empty());
  errors_of("eth1") += 1;
  now.shm->free_bytes = 0;
  const auto later = told.new_ones(judge_host(before, now, kFourWorkers));
  REQUIRE(later.size() == 2);
  CHECK(later[0].severity == Severity::kFatal);
  CHECK(later[1].where == "eth1");
}
