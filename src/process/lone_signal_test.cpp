#include "src/process/tree.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <string_view>

#include "src/process/descendants.h"

using namespace elastic;
using namespace elastic::process;

namespace {

std::string status(const std::string& blocked, const std::string& ignored, const std::string& caught,
                   const std::string& state = "S (sleeping)") {
  return "Name:\tpython3\nState:\t" + state +
         "\nUid:\t0\t0\t0\t0\nSigPnd:\t0000000000004000\nShdPnd:\t0000000000004000\nSigBlk:\t" + blocked +
         "\nSigIgn:\t" + ignored + "\nSigCgt:\t" + caught + "\nCapInh:\tffffffffffffffff\n";
}

const std::string kNone = "0000000000000000";
const std::string kTerm = "0000000000004000";

bool alone(int signal_number, const std::string& status) { return handles(signal_number, status) == Handles::kYes; }

}  // namespace

TEST_CASE("a worker that catches or blocks a signal gets it alone, and no other does") {
  CHECK(alone(SIGTERM, status(kNone, kNone, kTerm)));
  CHECK(alone(SIGTERM, status(kTerm, kNone, kNone)));
  CHECK_FALSE(alone(SIGTERM, status(kNone, kNone, kNone)));
  CHECK_FALSE(alone(SIGTERM, status(kNone, kTerm, kNone)));  // it ignores it
  CHECK_FALSE(alone(SIGUSR1, status(kNone, kNone, kTerm)));  // it handles another
  CHECK(alone(SIGUSR1, status(kNone, kNone, "0000000000000200")));
  CHECK(alone(SIGHUP, status(kNone, kNone, "0000000000000001")));
  CHECK(alone(64, status(kNone, kNone, "8000000000000000")));
}

TEST_CASE("a worker that neither handles nor ignores a signal dies of it, or awaits it") {
  const std::string none = status(kNone, kNone, kNone);
  CHECK(handles(SIGTERM, none) == Handles::kUnknown);
  CHECK(handles(SIGUSR1, none) == Handles::kUnknown);
  CHECK(handles(SIGINT, none) == Handles::kNo);
  CHECK(handles(SIGTERM, status(kNone, kTerm, kNone)) == Handles::kNo);  // it ignores it
  CHECK(handles(SIGWINCH, none) == Handles::kNo);                        // no process dies of it
  for (const char* state : {"T (stopped)", "t (tracing stop)", "D (disk sleep)"}) {
    CAPTURE(state);
    CHECK(handles(SIGTERM, status(kNone, kNone, kNone, state)) == Handles::kNo);
    CHECK(handles(SIGTERM, status(kNone, kNone, kTerm, state)) == Handles::kYes);
  }
}

TEST_CASE("SIGINT, and what ends, stops or continues a process, is for the whole group whoever handles it") {
  const std::string all = status("ffffffffffffffff", kNone, "ffffffffffffffff");
  for (const int signal : {SIGINT, SIGKILL, SIGSTOP, SIGCONT, SIGTSTP, SIGABRT}) {
    CAPTURE(signal);
    CHECK_FALSE(may_go_alone(signal));
    CHECK_FALSE(alone(signal, all));
  }
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGRTMIN}) CHECK(may_go_alone(signal));
}

TEST_CASE("a shell gets a signal together with what it waits for, under whatever name it runs") {
  for (const char* shell : {"/bin/sh", "/usr/bin/bash", "/bin/dash", "/usr/bin/zsh", "/bin/ksh", "/usr/bin/ksh93",
                            "/bin/busybox", "/usr/bin/bash (deleted)"}) {
    CAPTURE(shell);
    CHECK(is_shell(shell));
  }
  for (const char* program : {"/opt/sh/python", "/usr/bin/bashful", "/usr/bin/python3.11 (deleted)"}) {
    CAPTURE(program);
    CHECK_FALSE(is_shell(program));
  }
}

TEST_CASE("where a worker's state cannot be read, its whole group gets a signal") {
  CHECK_FALSE(alone(SIGTERM, ""));
  CHECK(handles(SIGTERM, "") == Handles::kNo);
  CHECK_FALSE(alone(SIGTERM, "Name:\tSigCgt:\nSigCgt:\tgarbage\n"));
  CHECK(status_text(getpid()).contains("\nSigCgt:\t"));
  CHECK(executable_of(getpid()).starts_with("/"));
  CHECK(status_text(-1).empty());
  CHECK(executable_of(-1).empty());
}
