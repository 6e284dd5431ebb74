#include "src/process/lone_signal.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <string_view>

#include "src/process/descendants.h"

using namespace elastic;
using namespace elastic::process;

namespace {

std::string status(const std::string& blocked, const std::string& ignored, const std::string& caught) {
  return "Name:\tpython3\nUid:\t0\t0\t0\t0\nSigPnd:\t0000000000004000\nShdPnd:\t0000000000004000\nSigBlk:\t" + blocked +
         "\nSigIgn:\t" + ignored + "\nSigCgt:\t" + caught + "\nCapInh:\tffffffffffffffff\n";
}

const std::string kNone = "0000000000000000";
const std::string kTerm = "0000000000004000";
const std::string kPython = "/usr/bin/python3.11";

constexpr std::string_view kSleeps = "hrtimer_nanosleep";

Handles what(int signal_number, const std::string& status, std::string_view executable, std::string_view waiting) {
  return handles(signal_number, {.status = status, .executable = executable, .waiting = waiting});
}

bool alone(int signal_number, const std::string& status, std::string_view executable,
           std::string_view waiting = kSleeps) {
  return what(signal_number, status, executable, waiting) == Handles::kYes;
}

}  // namespace

TEST_CASE("a worker that catches or blocks a signal gets it alone, and no other does") {
  CHECK(alone(SIGTERM, status(kNone, kNone, kTerm), kPython));
  CHECK(alone(SIGTERM, status(kTerm, kNone, kNone), kPython));
  CHECK_FALSE(alone(SIGTERM, status(kNone, kNone, kNone), kPython));
  CHECK_FALSE(alone(SIGTERM, status(kNone, kTerm, kNone), kPython));  // it ignores it
  CHECK_FALSE(alone(SIGUSR1, status(kNone, kNone, kTerm), kPython));  // it handles another
  CHECK(alone(SIGUSR1, status(kNone, kNone, "0000000000000200"), kPython));
  CHECK(alone(SIGHUP, status(kNone, kNone, "0000000000000001"), kPython));
  CHECK(alone(64, status(kNone, kNone, "8000000000000000"), kPython));
}

TEST_CASE("a worker that awaits signals gets one alone, though the kernel does not show which it awaits") {
  const std::string none = status(kNone, kNone, kNone);
  for (const char* function : {"do_sigtimedwait", "do_sigtimedwait.isra.0"})
    CHECK(alone(SIGTERM, none, kPython, function));
  CHECK_FALSE(alone(SIGTERM, none, kPython, kSleeps));
  CHECK_FALSE(alone(SIGTERM, status(kNone, kTerm, kNone), kPython, "do_sigtimedwait"));
  CHECK_FALSE(alone(SIGTERM, none, "/bin/sh", "do_sigtimedwait"));
  CHECK_FALSE(alone(SIGINT, none, kPython, "do_sigtimedwait"));
}

TEST_CASE("a worker that runs may be about to await a signal, or dies of it at once") {
  const std::string none = status(kNone, kNone, kNone);
  CHECK(what(SIGTERM, none, kPython, "") == Handles::kUnknown);
  CHECK(what(SIGUSR1, none, kPython, "") == Handles::kUnknown);
  CHECK(what(SIGTERM, status(kNone, kNone, kTerm), kPython, "") == Handles::kYes);
  CHECK(what(SIGTERM, none, kPython, kSleeps) == Handles::kNo);
  CHECK(what(SIGWINCH, none, kPython, "") == Handles::kNo);                        // of which nobody dies
  CHECK(what(SIGTERM, status(kNone, kTerm, kNone), kPython, "") == Handles::kNo);  // nor of one that it ignores
  CHECK(what(SIGTERM, none, "/bin/sh", "") == Handles::kNo);
}

TEST_CASE("SIGINT, and what ends, stops or continues a process, is for the whole group whoever handles it") {
  const std::string all = status("ffffffffffffffff", kNone, "ffffffffffffffff");
  for (const int signal : {SIGINT, SIGKILL, SIGSTOP, SIGCONT, SIGTSTP, SIGABRT}) {
    CAPTURE(signal);
    CHECK_FALSE(may_go_alone(signal));
    CHECK_FALSE(alone(signal, all, kPython));
  }
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGRTMIN}) CHECK(may_go_alone(signal));
}

TEST_CASE("a shell gets a signal together with what it waits for, under whatever name it runs") {
  const std::string traps = status(kNone, kNone, kTerm);
  for (const char* shell : {"/bin/sh", "/usr/bin/bash", "/bin/dash", "/usr/bin/zsh", "/bin/ksh", "/usr/bin/ksh93",
                            "/bin/busybox", "/usr/bin/bash (deleted)"}) {
    CAPTURE(shell);
    CHECK_FALSE(alone(SIGTERM, traps, shell));
  }
  for (const char* program : {"/opt/sh/python", "/usr/bin/bashful", "/usr/bin/python3.11 (deleted)"}) {
    CAPTURE(program);
    CHECK(alone(SIGTERM, traps, program));
  }
}

TEST_CASE("where a worker's state cannot be read, its whole group gets a signal") {
  CHECK_FALSE(alone(SIGTERM, "", kPython));
  CHECK(what(SIGTERM, "", kPython, "") == Handles::kNo);
  CHECK_FALSE(alone(SIGTERM, status(kNone, kNone, kTerm), ""));
  CHECK_FALSE(alone(SIGTERM, "Name:\tSigCgt:\nSigCgt:\tgarbage\n", kPython));
  CHECK(status_text(getpid()).contains("\nSigCgt:\t"));
  CHECK(executable_of(getpid()).starts_with("/"));
  CHECK(status_text(-1).empty());
  CHECK(executable_of(-1).empty());
}
