#include "health/host/read_facts.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "src/base/fake_root_test_support.h"

using namespace elastic::health;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMib = 1024 * 1024;

struct HostRoot : elastic::testing::FakeRoot {
  HostFacts read(const std::string& log_directory = "") const { return read_facts(path, {}, log_directory); }
};

// A cgroup of version 2, two levels below the mount.
void add_cgroup_v2(const HostRoot& root) {
  root.file("/proc/self/cgroup", "0::/pod/worker\n");
  root.file("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n");
}

void add_cgroup_v1(const HostRoot& root) {
  root.file("/proc/self/cgroup", "4:memory:/docker/abc/job\n3:cpu,cpuacct:/docker/abc/job\n");
  root.file("/proc/self/mountinfo",
            "31 23 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
            "32 23 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
}

void check_nothing_known(const HostFacts& facts) {
  CHECK(!facts.may_lock_all);
  CHECK(!facts.shm);
  CHECK(!facts.log_disk);
  CHECK(!facts.log_inodes_free);
  CHECK(!facts.memory);
  CHECK(!facts.cgroup_memory);
  CHECK(!facts.swap);
  CHECK(!facts.quota_cpus);
  CHECK(!facts.online_cpus);
  CHECK(!facts.usable_cpus);
  CHECK(!facts.throttled_periods);
  CHECK(!facts.throttled_us);
  CHECK(!facts.heat_throttles);
  CHECK(facts.interfaces.empty());
  CHECK(facts.infiniband_ports.empty());
}

}  // namespace

TEST_CASE("of a host that shows nothing nothing is known") {
  const HostRoot root;
  check_nothing_known(root.read("/logs"));
  check_nothing_known(read_facts(root.path / "none", {}, ""));
  const HostFacts facts = read_facts(root.path, {.locked_bytes = kUnlimited, .open_files = 1024}, "");
  CHECK(facts.limits.locked_bytes == kUnlimited);
  CHECK(facts.limits.open_files == 1024);
}

TEST_CASE("what makes no sense is not known: of no kind, too large, cut off, a directory, a pipe") {
  for (const std::string text :
       {"", "\n", "x", "-1", "18446744073709551616", "MemTotal:", "0::", "4: ", "99999999999999-1", "0-", "0-99999999",
        "1,,2", "3-1,0-9", "0-9223372036854775807,0-9223372036854775807", "\xff\xfe\n"}) {
    CAPTURE(text);
    const HostRoot root;
    add_cgroup_v2(root);
    root.file("/proc/meminfo", "MemTotal: " + text + " kB\nMemAvailable: 1 kB\nSwapTotal: 3\nSwapFree: 4 kB\n");
    root.file("/proc/self/status", "CapEff:\t" + text + "\nCpus_allowed_list:\t" + text + "\n");
    root.file("/sys/fs/cgroup/pod/cpu.max", text);
    root.file("/sys/fs/cgroup/pod/worker/cpu.max", "100000 " + text);
    root.file("/sys/fs/cgroup/pod/cpu.stat", "nr_throttled " + text + "\nthrottled_usec " + text);
    root.file("/sys/fs/cgroup/pod/memory.max", text);
    root.file("/sys/devices/system/cpu/online", text);
    root.file("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", text);
    root.file("/sys/class/infiniband/mlx5_0/ports/x/state", "4: ACTIVE");
    check_nothing_known(root.read());
    root.file("/sys/class/net/eth0/operstate", text);
    root.file("/sys/class/net/eth0/carrier", text);
    root.file("/sys/class/net/eth0/speed", text);
    root.file("/sys/class/net/eth0/statistics/rx_errors", text);
    root.file("/sys/class/infiniband/mlx5_0/ports/1/state", text);
    const HostFacts facts = root.read();
    REQUIRE(facts.interfaces.size() == 1);
    CHECK(!facts.interfaces[0].is_up);
    CHECK(!facts.interfaces[0].speed_mbps);
    CHECK(!facts.interfaces[0].errors);
    REQUIRE(facts.infiniband_ports.size() == 1);
    CHECK(facts.infiniband_ports[0].state.empty());
  }
  const HostRoot huge;
  huge.file("/proc/meminfo", "MemTotal: 18014398509481985 kB\nMemAvailable: 0 kB\nSwapTotal: 1 kB\nSwapFree: 2 kB\n");
  check_nothing_known(huge.read());
  const HostRoot root;
  fs::create_directories(root.path / "proc/meminfo");
  fs::create_directories(root.path / "sys/devices/system/cpu");
  REQUIRE(mkfifo((root.path / "sys/devices/system/cpu/online").c_str(), 0600) == 0);
  check_nothing_known(root.read());
}

TEST_CASE("a file that does not end is read up to a bound") {
  const HostRoot root;
  fs::create_directories(root.path / "proc");
  fs::create_symlink("/dev/zero", root.path / "proc/meminfo");
  CHECK(!root.read().memory);
}

TEST_CASE("memory and swap are read, in bytes") {
  const HostRoot root;
  root.file("/proc/meminfo",
            "MemTotal:        2048 kB\nMemFree:  1 kB\nMemAvailable:    1024 kB\n"
            "SwapTotal:  512 kB\nSwapFree:  128 kB\n");
  const HostFacts facts = root.read();
  REQUIRE(facts.memory);
  CHECK(facts.memory->total_bytes == 2 * kMib);
  CHECK(facts.memory->free_bytes == kMib);
  REQUIRE(facts.swap);
  CHECK(facts.swap->total_bytes == 512 * 1024);
  CHECK(facts.swap->free_bytes == 128 * 1024);
}

TEST_CASE("file systems are asked for /dev/shm and for the logs") {
  const HostRoot root;
  fs::create_directories(root.path / "dev/shm");
  CHECK(root.read().shm);
  CHECK(!root.read().log_disk);
  fs::create_directories(root.path / "logs");
  const HostFacts facts = root.read("/logs");
  REQUIRE(facts.log_disk);
  CHECK(facts.log_disk->total_bytes > 0);
  CHECK(facts.log_disk->free_bytes <= facts.log_disk->total_bytes);
}

TEST_CASE("of a file system that counts nothing nothing is known") {
  const HostFacts facts = read_facts("", {}, "/proc");
  CHECK(!facts.log_disk);
  CHECK(!facts.log_inodes_free);
}

TEST_CASE("the smallest CPU limit of our cgroup and those above it counts, and what all have throttled") {
  const HostRoot root;
  add_cgroup_v2(root);
  root.file("/sys/fs/cgroup/pod/worker/cpu.max", "max 100000\n");
  root.file("/sys/fs/cgroup/pod/worker/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 2\nthrottled_usec 300\n");
  CHECK(!root.read().quota_cpus);
  root.file("/sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
  root.file("/sys/fs/cgroup/pod/cpu.stat", "nr_throttled 5\nthrottled_usec 4000\n");
  CHECK(root.read().quota_cpus == 1.5);
  CHECK(root.read().throttled_periods == 7);
  CHECK(root.read().throttled_us == 4300);
  root.file("/sys/fs/cgroup/pod/worker/cpu.max", "50000 100000\n");
  CHECK(root.read().quota_cpus == 0.5);
  root.file("/sys/fs/cgroup/cpu.max", "25000 100000\n");
  CHECK(root.read().quota_cpus == 0.25);
}

TEST_CASE("CPU limits of cgroups of version 1 are read as well, inside of a container's part") {
  const HostRoot root;
  add_cgroup_v1(root);
  const std::string cpu = "/sys/fs/cgroup/cpu,cpuacct";
  root.file(cpu + "/job/cpu.cfs_quota_us", "-1\n");
  root.file(cpu + "/job/cpu.cfs_period_us", "100000\n");
  root.file(cpu + "/job/cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 2000000\n");
  CHECK(!root.read().quota_cpus);
  root.file(cpu + "/cpu.cfs_quota_us", "250000\n");
  root.file(cpu + "/cpu.cfs_period_us", "100000\n");
  root.file(cpu + "/cpu.stat", "nr_throttled 3\nthrottled_time 1000000\n");
  const HostFacts facts = root.read();
  CHECK(facts.quota_cpus == 2.5);
  CHECK(facts.throttled_periods == 4);
  CHECK(facts.throttled_us == 3000);
}

TEST_CASE("of the memory limits of our cgroups the one counts that has the least left; page cache is left") {
  const HostRoot v2;
  add_cgroup_v2(v2);
  v2.file("/sys/fs/cgroup/pod/worker/memory.max", "max\n");
  v2.file("/sys/fs/cgroup/pod/worker/memory.current", "1000\n");
  CHECK(!v2.read().cgroup_memory);
  v2.file("/sys/fs/cgroup/pod/memory.max", "5000\n");
  v2.file("/sys/fs/cgroup/pod/memory.current", "4500\n");
  v2.file("/sys/fs/cgroup/pod/memory.stat", "file 800\ninactive_file 500\n");
  REQUIRE(v2.read().cgroup_memory);
  CHECK(v2.read().cgroup_memory->total_bytes == 5000);
  CHECK(v2.read().cgroup_memory->free_bytes == 1000);
  v2.file("/sys/fs/cgroup/pod/worker/memory.max", "1600\n");
  CHECK(v2.read().cgroup_memory->free_bytes == 600);
  v2.file("/sys/fs/cgroup/pod/memory.current", "5000\n");
  CHECK(v2.read().cgroup_memory->free_bytes == 500);
  v2.file("/sys/fs/cgroup/pod/worker/memory.current", "1700\n");
  CHECK(v2.read().cgroup_memory->free_bytes == 0);

  const HostRoot v1;
  add_cgroup_v1(v1);
  v1.file("/proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 50 kB\n");
  v1.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  v1.file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n");
  CHECK(!v1.read().cgroup_memory);
  v1.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "8000\n");
  v1.file("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 1000\n");
  REQUIRE(v1.read().cgroup_memory);
  CHECK(v1.read().cgroup_memory->free_bytes == 7000);
}

TEST_CASE("CPUs are counted by their lists, and how often heat slowed them down") {
  const HostRoot root;
  root.file("/sys/devices/system/cpu/online", "0-7,9\n");
  root.file("/proc/self/status", "Name:\tx\nCapEff:\t0000000000004000\nCpus_allowed_list:\t0,2-3\nSeccomp:\t0\n");
  root.file("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n");
  root.file("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "4\n");
  root.file("/sys/devices/system/cpu/cpufreq/policy", "x\n");
  const HostFacts facts = root.read();
  CHECK(facts.online_cpus == 9);
  CHECK(facts.usable_cpus == 3);
  CHECK(facts.heat_throttles == 7);
  CHECK(facts.may_lock_all == true);
  root.file("/proc/self/status", "CapEff:\t000001ffffffbfff\n");
  CHECK(root.read().may_lock_all == false);
}

TEST_CASE("interfaces are told with their link, speed, errors and what stands behind them") {
  const HostRoot root;
  const std::string net = "/sys/class/net/";
  root.file(net + "bonding_masters", "bond0\n");
  root.file(net + "eth0/operstate", "up\n");
  root.file(net + "eth0/speed", "25000\n");
  root.file(net + "eth0/type", "1\n");
  root.file(net + "eth0/statistics/rx_errors", "3\n");
  root.file(net + "eth0/statistics/tx_errors", "4\n");
  root.file(net + "eth0/device/vendor", "0x15b3\n");
  root.file(net + "eth0/device/device", "0x1017\n");
  root.file(net + "eth1/operstate", "lowerlayerdown\n");
  root.file(net + "eth1/carrier", "1\n");
  root.file(net + "eth1/speed", "-1\n");
  root.file(net + "eth1/device/uevent", "\n");
  root.file(net + "tun0/operstate", "unknown\n");
  root.file(net + "tun0/carrier", "1\n");
  root.file(net + "lo/type", "772\n");
  root.file(net + "veth1/operstate", "unknown\n");
  root.file(net + "veth1/carrier", "0\n");
  const std::vector<NetworkInterface> all = root.read().interfaces;
  REQUIRE(all.size() == 5);
  CHECK(all[0].name == "eth0");
  CHECK(all[0].is_up == true);
  CHECK(all[0].speed_mbps == 25000);
  CHECK(all[0].errors == 7);
  CHECK(!all[0].is_virtual);
  CHECK(!all[0].is_loopback);
  CHECK(all[0].kind == "0x15b3:0x1017");
  CHECK(all[1].name == "eth1");
  CHECK(all[1].is_up == false);
  CHECK(!all[1].speed_mbps);
  CHECK(!all[1].errors);
  CHECK(!all[1].is_virtual);
  CHECK(all[1].kind.empty());
  CHECK(all[2].is_loopback);
  CHECK(all[2].is_virtual);
  CHECK(!all[2].is_up);
  CHECK(all[3].is_up == true);
  CHECK(all[3].is_virtual);
  CHECK(all[4].is_up == false);
}

TEST_CASE("every port of every InfiniBand device is told") {
  const HostRoot root;
  const std::string all = "/sys/class/infiniband/";
  root.file(all + "mlx5_0/ports/1/state", "4: ACTIVE\n");
  root.file(all + "mlx5_0/ports/1/phys_state", "5: LinkUp\n");
  root.file(all + "mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
  root.file(all + "mlx5_0/ports/1/link_layer", "InfiniBand\n");
  root.file(all + "mlx5_0/ports/2/state", "1: DOWN\n");
  root.file(all + "mlx5_1/ports/1/state", "2: INIT\n");
  const std::vector<InfinibandPort> ports = root.read().infiniband_ports;
  REQUIRE(ports.size() == 3);
  CHECK(ports[0].device == "mlx5_0");
  CHECK(ports[0].port == 1);
  CHECK(ports[0].state == "ACTIVE");
  CHECK(ports[0].phys_state == "LinkUp");
  CHECK(ports[0].rate == "100 Gb/sec (4X EDR)");
  CHECK(ports[0].link_layer == "InfiniBand");
  CHECK(ports[1].port == 2);
  CHECK(ports[1].state == "DOWN");
  CHECK(ports[2].device == "mlx5_1");
  CHECK(ports[2].state == "INIT");
}

TEST_CASE("the host that we are on has memory") {
  const HostFacts facts = read_facts("", {}, "/tmp");
  REQUIRE(facts.memory);
  CHECK(facts.memory->total_bytes > 0);
}

TEST_CASE("free memory is the host's, or what a cgroup leaves of its limit if that is less") {
  const HostRoot root;
  CHECK(!free_memory(root.path));
  root.file("/proc/meminfo", "MemTotal: 8192 kB\nMemAvailable: 4096 kB\n");
  CHECK(free_memory(root.path) == 4 * kMib);
  add_cgroup_v2(root);
  root.file("/sys/fs/cgroup/pod/memory.max", "3145728\n");
  root.file("/sys/fs/cgroup/pod/memory.current", "1048576\n");
  CHECK(free_memory(root.path) == 2 * kMib);
}
