#include "health/evidence/process_state.h"

#include <doctest/doctest.h>

#include <string>

#include "src/base/text.h"

using namespace elastic;
using namespace elastic::evidence;

namespace {

// As /proc/PID/stat of Linux has it.
std::string stat_text(char state, std::uint64_t user, std::uint64_t system, std::uint64_t started = 8214,
                      const std::string& name = "python") {
  return format(
      "4711 ({}) {} 4700 4711 4711 0 -1 4194304 4318 0 3 0 {} {} 0 0 20 0 12 0 {} 1048576 2500 "
      "18446744073709551615 1 1 0 0 0 0 0 16781312 2 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
      name, state, user, system, started);
}

ProcessSample sample(char state, std::uint64_t ticks = 0, std::uint64_t started = 8214) {
  const std::string stat = stat_text(state, ticks, 0, started);
  return read_process({.stat = stat});
}

constexpr std::uint64_t kTwoSeconds = 200;

}  // namespace

TEST_CASE("a process's files say its state, where it waits, what it has used and moved") {
  const std::string stat = stat_text('S', 120, 34);
  const auto found =
      read_process({.stat = stat,
                    .status = "Name:\tpython\nState:\tS (sleeping)\nTgid:\t4711\nNSpid:\t4711\t17\nThreads:\t12\n",
                    .wchan = "futex_do_wait",
                    .syscall = "202 0x7f1c 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd 0x7f1d\n",
                    .io = "rchar: 1000\nwchar: 200\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 0\n"
                          "cancelled_write_bytes: 0\n"});
  CHECK(found.state == 'S');
  CHECK(found.started_ticks == 8214);
  CHECK(found.cpu_ticks == 154);
  CHECK(found.wchan == "futex_do_wait");
  CHECK(found.syscall == 202);
  CHECK(found.bytes == 4096);
  CHECK(found.own_pid == 17);
  CHECK(describe(ProcessClass::kSleep, found) == "sleeping in futex_do_wait, syscall 202");
}

TEST_CASE("a process's name may have blanks, parentheses and line ends") {
  const std::string stat = stat_text('D', 1, 2, 99, "a) R 1 (b\n c");
  const auto found = read_process({.stat = stat});
  CHECK(found.state == 'D');
  CHECK(found.cpu_ticks == 3);
  CHECK(found.started_ticks == 99);
}

TEST_CASE("what cannot be read is unknown, and status stands in for stat") {
  const auto nothing = read_process({});
  CHECK(nothing.state == 0);
  CHECK_FALSE(nothing.cpu_ticks);
  CHECK_FALSE(nothing.syscall);
  CHECK_FALSE(nothing.bytes);
  CHECK_FALSE(nothing.own_pid);
  CHECK(nothing.wchan.empty());
  // As they are of another user's process.
  const auto other = read_process({.status = "Name:\tx\nState:\tT (stopped)\n", .wchan = "0"});
  CHECK(other.state == 'T');
  CHECK(other.wchan.empty());
  CHECK_FALSE(other.cpu_ticks);
  CHECK(read_process({.stat = "4711 (python) ? 1"}).state == 0);
  CHECK(read_process({.stat = "4711 python"}).state == 0);
}

TEST_CASE("outside of a system call, and while it runs, a process has none") {
  CHECK_FALSE(read_process({.syscall = "running\n"}).syscall);
  CHECK_FALSE(read_process({.syscall = "-1 0x7ffd 0x7f01\n"}).syscall);
  CHECK(read_process({.syscall = "0 0x3 0x7f 0x1 0x0 0x0 0x0 0x7ffd 0x7f01\n"}).syscall == 0);
}

TEST_CASE("a name of a kernel function is shown without control characters, and bounded") {
  CHECK(read_process({.wchan = "a\x1b[2J"}).wchan == "a\\x1b[2J");
  const std::string endless(1000, 'x');
  CHECK(read_process({.wchan = endless}).wchan.size() <= kWaitNameBytes + 3);
}

TEST_CASE("a process computes if it is found running twice, or has used more than a tenth of a processor") {
  CHECK(class_of(sample('R', 10), sample('R', 11), kTwoSeconds) == ProcessClass::kRun);
  CHECK(class_of(sample('S', 10), sample('S', 31), kTwoSeconds) == ProcessClass::kRun);
  CHECK(class_of(sample('D', 10), sample('D', 210), kTwoSeconds) == ProcessClass::kRun);
  CHECK(class_of(sample('S', 10), sample('S', 30), kTwoSeconds) == ProcessClass::kSleep);
  CHECK(class_of(sample('R', 10), sample('S', 11), kTwoSeconds) == ProcessClass::kSleep);
  CHECK(class_of(sample('S', 10), sample('S', 11), 1) == ProcessClass::kSleep);
}

TEST_CASE("a process that waits uninterruptibly is one that was found so twice") {
  CHECK(class_of(sample('D'), sample('D'), kTwoSeconds) == ProcessClass::kDisk);
  CHECK(class_of(sample('S'), sample('D'), kTwoSeconds) == ProcessClass::kSleep);
  CHECK(class_of(sample('D'), sample('S'), kTwoSeconds) == ProcessClass::kSleep);
  CHECK(describe(ProcessClass::kDisk, read_process({.wchan = "rpc_wait_bit_killable"})) ==
        "in an uninterruptible wait in rpc_wait_bit_killable");
}

TEST_CASE("a process is stopped if it is at last, and gone if it has ended or its pid has another process") {
  CHECK(class_of(sample('S'), sample('T'), kTwoSeconds) == ProcessClass::kStopped);
  CHECK(class_of(sample('t'), sample('t'), kTwoSeconds) == ProcessClass::kStopped);
  CHECK(class_of(sample('T'), sample('S'), kTwoSeconds) == ProcessClass::kSleep);
  CHECK(class_of(sample('S'), sample('Z'), kTwoSeconds) == ProcessClass::kGone);
  CHECK(class_of(sample('S'), ProcessSample{}, kTwoSeconds) == ProcessClass::kGone);
  CHECK(class_of(sample('S', 5, 100), sample('S', 5, 101), kTwoSeconds) == ProcessClass::kGone);
}

TEST_CASE("what a process has used between two samples is known of the same process only") {
  const std::string before = stat_text('S', 10, 0);
  const std::string after = stat_text('S', 15, 2);
  const auto first = read_process({.stat = before});
  auto second = read_process({.stat = after});
  CHECK(ticks_used(first, second) == 7);
  second.started_ticks = 1;
  CHECK_FALSE(ticks_used(first, second));
}
