#include "src/process/evidence.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "src/base/fake_root_test_support.h"
#include "src/process/cgroup.h"

using namespace elastic;
using namespace elastic::process;

namespace {

struct CgroupRoot : elastic::testing::FakeRoot {
  // Writes the files of a host with one cgroup v2 hierarchy, as a process of a job sees them.
  void version_2(const std::string& own_path, const std::string& mounted = "/") const {
    file("proc/self/cgroup", "0::" + own_path + "\n");
    file("proc/self/mountinfo", "23 1 0:4 / /proc rw - proc proc rw\n41 31 0:38 " + mounted +
                                    " /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void version_1(const std::string& own_path, const std::string& mounted = "/") const {
    file("proc/self/cgroup", "9:cpuset:/other\n4:blkio,memory:" + own_path + "\n0::/unified\n");
    file("proc/self/mountinfo", "30 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n35 31 0:32 " +
                                    mounted + " /sys/fs/cgroup/memory rw - cgroup cgroup rw,blkio,memory\n");
  }
};

// A kernel log that the test writes.
struct FakeLog {
  FakeLog() {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    log = KernelLog(UniqueFd(ends[0]));
    kernel = UniqueFd(ends[1]);
  }
  void record(const std::string& text) const {
    REQUIRE(write(kernel.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  KernelLog log{UniqueFd()};
  UniqueFd kernel;
};

const std::string kKilled = "Memory cgroup out of memory: Killed process 42 (python) total-vm:9kB, anon-rss:8kB";

const CrashedProcess kCrashed{.pid = 42,
                              .signal = SIGSEGV,
                              .name = "pt/main",
                              .executable = "/opt/py/bin/python3.11",
                              .working_directory = "/job",
                              .hostname = "node-1",
                              .uid = 1000,
                              .gid = 100,
                              .core_limit_bytes = 4096};

std::string core_file(std::string_view pattern, bool uses_pid = false) {
  const CorePlace place = expand_core_pattern(pattern, uses_pid, kCrashed);
  CHECK(place.kind == CorePlace::Kind::kFile);
  return place.where;
}

}  // namespace

TEST_CASE("kills for lack of memory are counted from the mark on, in a version 2 cgroup") {
  const CgroupRoot root;
  root.version_2("/job");
  const std::string file = "sys/fs/cgroup/job/memory.events";
  root.file(file, "low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\noom_group_kill 0\n");
  OomCounter counter(root.path);
  CHECK(counter.file() == (root.path / file).string());
  CHECK_FALSE(counter.is_whole_host());
  CHECK(counter.since_mark().count == 0);
  CHECK(counter.since_mark().evidence.empty());
  root.file(file, "oom 9\noom_kill 5\n");
  CHECK(counter.since_mark().count == 3);
  CHECK(counter.since_mark().evidence == counter.file() + ": oom_kill 5 (2 before)");
  counter.mark();
  CHECK(counter.since_mark().count == 0);
}

TEST_CASE("where the own cgroup counts no memory the nearest one above it does") {
  const CgroupRoot root;
  root.version_2("/user/session/run");
  root.file("sys/fs/cgroup/memory.events", "oom_kill 7\n");
  CHECK(OomCounter(root.path).file() == (root.path / "sys/fs/cgroup/memory.events").string());
  root.file("sys/fs/cgroup/user/memory.events", "oom_kill 1\n");
  CHECK(OomCounter(root.path).file() == (root.path / "sys/fs/cgroup/user/memory.events").string());
}

TEST_CASE("a version 1 memory cgroup is found among other hierarchies, also in a container") {
  const CgroupRoot root;
  root.version_1("/docker/abc/sub", "/docker/abc");
  root.file("sys/fs/cgroup/memory/sub/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  OomCounter counter(root.path);
  CHECK(counter.file() == (root.path / "sys/fs/cgroup/memory/sub/memory.oom_control").string());
  root.file("sys/fs/cgroup/memory/sub/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  CHECK(counter.since_mark().count == 1);
}

TEST_CASE("a file without the count of kills is not taken for one, and the host's is the last resort") {
  const CgroupRoot root;
  root.version_1("/", "/");
  root.file("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n");
  root.file("proc/vmstat", "nr_free_pages 1\noom_kill 4\n");
  const OomCounter counter(root.path);
  CHECK(counter.file() == (root.path / "proc/vmstat").string());
  CHECK(counter.is_whole_host());
}

TEST_CASE("where nothing counts, nobody was killed for memory as far as is known") {
  const CgroupRoot root;
  const OomCounter counter(root.path);
  CHECK(counter.file().empty());
  CHECK(counter.since_mark().count == 0);
}

TEST_CASE("a cgroup outside of what is mounted has no directory") {
  const CgroupRoot root;
  root.version_2("/docker/abcdef", "/docker/abc");
  CHECK_FALSE(own_cgroup_place({}, root.path).has_value());
  root.version_2("/docker/abc", "/docker/abc");
  CHECK(own_cgroup_place({}, root.path)->directory() == (root.path / "sys/fs/cgroup").string());
  CHECK_FALSE(own_cgroup_place("memory", root.path).has_value());
}

TEST_CASE("the kernel's words about a kill for memory and about a GPU's error are understood") {
  using Kind = KernelEvent::Kind;
  CHECK(parse_kernel_message(kKilled) == KernelEvent{Kind::kOomKill, 42, kKilled});
  CHECK(parse_kernel_message("Out of memory: Killed process 7 (a b)")->pid == 7);
  CHECK(parse_kernel_message("Killed process 8 (python) total-vm:1kB")->pid == 8);
  for (const char* xid : {"NVRM: Xid (PCI:0000:3b:00): 79, pid=99, name=python, GPU has fallen off the bus.",
                          "NVRM: Xid (PCI:0000:3b:00): 63, pid='<unknown>', Row remapper"}) {
    CHECK(parse_kernel_message(xid) == KernelEvent{Kind::kXid, 0, xid});
  }
  for (const char* other : {"", "Out of memory: Kill process 7 (python) score 900 or sacrifice child",
                            "python[7]: Killed process 8", "NVRM: Xid (PCI:0000:3b:00): , pid=1", "NVRM: Xid (",
                            "Out of memory: Killed process 99999999999 (x)", "usb 1-1: new device"}) {
    CAPTURE(other);
    CHECK_FALSE(parse_kernel_message(other).has_value());
  }
}

TEST_CASE("what the kernel's log gets from now on is read once, without waiting") {
  FakeLog fake;
  CHECK(fake.log.read_new().empty());
  fake.record("6,101,5000,-;usb 1-1: new device\n");
  fake.record("3,102,5001,-,caller=T42;" + kKilled + "\n SUBSYSTEM=memory\n");
  const auto events = fake.log.read_new();
  REQUIRE(events.size() == 1);
  CHECK(events[0].text == kKilled);
  CHECK(fake.log.read_new().empty());
}

TEST_CASE("what a process has written to the kernel's log is no evidence") {
  FakeLog fake;
  fake.record("12,103,5002,-;" + kKilled + "\n");
  fake.record(kKilled);
  CHECK(fake.log.read_new().empty());
}

TEST_CASE("a log that is full of events is read in parts") {
  FakeLog fake;
  for (int i = 0; i < 100; ++i) fake.record("3,1,1,-;" + kKilled + "\n");
  CHECK(fake.log.read_new().size() == 64);
  CHECK(fake.log.read_new().size() == 36);
}

TEST_CASE("the kernel's log is read from its oldest record, or from now on, with the time of each event") {
  const CgroupRoot root;
  const std::string xid = "NVRM: Xid (PCI:0000:3b:00): 79, pid=99, name=python, GPU has fallen off the bus.";
  std::string text;
  for (int i = 0; i < 200; ++i) text += "3," + std::to_string(i) + ",9000000123,-;" + xid + "\n SUBSYSTEM=pci\n";
  root.file("dev/kmsg", text);
  auto oldest = KernelLog::open(root.path, KernelLog::From::kOldest);
  auto later = KernelLog::open(root.path);
  REQUIRE(oldest);
  REQUIRE(later);
  std::size_t count = 0;
  do {
    for (const KernelEvent& event : oldest->read_new()) {
      CHECK(event.text == xid);
      CHECK(event.time_us == 9'000'000'123);
      ++count;
    }
  } while (!oldest->is_at_end());
  CHECK(count == 200);
  CHECK(later->read_new().empty());
  CHECK(later->is_at_end());
  std::ofstream(root.path / "dev/kmsg", std::ios::app) << "3,200,1,-;" + xid;
  CHECK(later->read_new().empty());
  std::ofstream(root.path / "dev/kmsg", std::ios::app) << "\n";
  CHECK(later->read_new().size() == 1);
}

TEST_CASE("a kernel log that is not there is an error with its path") {
  const CgroupRoot root;
  const auto log = KernelLog::open(root.path);
  REQUIRE_FALSE(log.has_value());
  CHECK(log.error().what.ends_with("/dev/kmsg"));
}

TEST_CASE("a core file's name is expanded as core(5) says") {
  CHECK(core_file("/cores/core.%e.%p.%s.%u.%g.%h.%%") == "/cores/core.pt!main.42.11.1000.100.node-1.%");
  CHECK(core_file("/c/%E_%f_%c") == "/c/!opt!py!bin!python3.11_python3.11_4096");
  CHECK(core_file("core") == "/job/core");
  CHECK(core_file("core", true) == "/job/core.42");
  CHECK(core_file("core-%p", true) == "/job/core-42");
  CHECK(core_file("", true) == "/job/.42");
  CHECK(core_file("/c/%z%t-%P-%") == "/c/*-*-");
}

TEST_CASE("a name cannot lead a core file outside of its directory") {
  CrashedProcess process = kCrashed;
  process.name = "..";
  CHECK(expand_core_pattern("/cores/%e/%p", false, process).where == "/cores/!./42");
}

TEST_CASE("a core may go to a program or a socket, whatever the limit is") {
  CrashedProcess process = kCrashed;
  process.core_limit_bytes = 0;
  const CorePlace program = expand_core_pattern("|/usr/lib/systemd/systemd-coredump %P %u", false, process);
  CHECK(program.kind == CorePlace::Kind::kReceiver);
  CHECK(program.text(42) == "core handed to /usr/lib/systemd/systemd-coredump; see coredumpctl info 42");
  CHECK(expand_core_pattern("|/usr/share/apport/apport %p", true, process).text(42) ==
        "core handed to /usr/share/apport/apport");
  CHECK(expand_core_pattern("@@/run/cores", false, process).text(42) == "core handed to the socket /run/cores");
}

TEST_CASE("where there is no core file the reason is told") {
  CrashedProcess process = kCrashed;
  CHECK(expand_core_pattern("", false, process).text(42) == "no core file: kernel.core_pattern is empty");
  process.core_limit_bytes = 0;
  CHECK(expand_core_pattern("core", false, process).text(42) == "no core file: the core size limit is 0 (ulimit -c)");
}

TEST_CASE("the host's pattern is read") {
  const CgroupRoot root;
  root.file("proc/sys/kernel/core_pattern", "/cores/%e\n");
  root.file("proc/sys/kernel/core_uses_pid", "1\n");
  CHECK(core_place(kCrashed, root.path).text(42) == "core file /cores/pt!main.42");
}
