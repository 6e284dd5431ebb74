#include "src/process/tree.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/base/unique_fd.h"

using namespace elastic;
using namespace elastic::process;

namespace {

Command shell(const std::string& script) {
  return {.path = "/bin/sh", .arguments = {"sh", "-c", script}, .environment = {}, .variables = {"PATH=/usr/bin:/bin"}};
}

// A loop with a WorkerTree that runs until all groups are gone.
struct Fixture {
  net::Loop loop;
  InheritedState inherited = InheritedState::capture();
  SpawnContext context{.inherited = inherited};
  std::map<int, ExitStatus> exits;
  std::function<void()> after_exit = [] {};
  ExitStatus helper_exit;
  WorkerTree tree{loop,
                  context,
                  {.on_exit =
                       [this](int rank, ExitStatus status) {
                         exits[rank] = status;
                         after_exit();
                       },
                   .on_helper_exit =
                       [this](ExitStatus status) {
                         helper_exit = status;
                         loop.stop();
                       },
                   .on_all_gone = [this] { loop.stop(); }}};
  ~Fixture() { sigprocmask(SIG_SETMASK, &inherited.signal_mask, nullptr); }
  void run_until_gone() {
    tree.expect_all_gone();
    loop.run();
  }
};

// A worker that blocks SIGUSR1, with a helper in its group that tells by a pipe each signal of SIGUSR1 and SIGUSR2 that
// it takes, and ends with SIGUSR1. The worker ends when its other pipe has no writer any more.
struct WithHelper {
  pid_t worker = 0;
  pid_t helper = 0;
  UniqueFd told;
  UniqueFd lives;

  WithHelper() {
    int tell[2];
    int live[2];
    REQUIRE(pipe2(tell, O_CLOEXEC) == 0);
    REQUIRE(pipe2(live, O_CLOEXEC) == 0);
    worker = fork();
    REQUIRE(worker >= 0);
    if (worker == 0) run(tell[1], live);
    close(tell[1]);
    close(live[0]);
    told = UniqueFd(tell[0]);
    lives = UniqueFd(live[1]);
    REQUIRE(read(told.get(), &helper, sizeof helper) == sizeof helper);
  }

  int next() const {
    int number = 0;
    return read(told.get(), &number, sizeof number) == sizeof number ? number : 0;
  }

 private:
  [[noreturn]] static void run(int tell, const int* live) {
    setsid();
    signal(SIGTERM, SIG_DFL);  // the test program catches it
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGUSR1);
    sigaddset(&taken, SIGUSR2);
    sigprocmask(SIG_SETMASK, &taken, nullptr);
    const pid_t helper = fork();
    close(live[1]);
    if (helper != 0) {
      char byte = 0;
      (void)!write(tell, &helper, sizeof helper);
      close(tell);
      (void)!read(live[0], &byte, 1);
      _exit(0);
    }
    for (int number = 0; number != SIGUSR1;) {
      number = sigwaitinfo(&taken, nullptr);
      (void)!write(tell, &number, sizeof number);
    }
    _exit(0);
  }
};

}  // namespace

TEST_CASE("each worker's exit code or signal is seen, whatever the order") {
  Fixture f;
  REQUIRE(f.tree.start(0, shell("exit 0")));
  REQUIRE(f.tree.start(1, shell("exit 85")));
  REQUIRE(f.tree.start(2, shell("kill -SEGV $$")));
  f.run_until_gone();
  CHECK(f.exits.at(0).success());
  CHECK(f.exits.at(1).python_code() == 85);
  CHECK(f.exits.at(2).python_code() == -SIGSEGV);
}

TEST_CASE("a worker leads a session and a group of its own") {
  Fixture f;
  const auto pid = f.tree.start(0, shell("exec sleep 1000"));
  REQUIRE(pid);
  CHECK(getsid(*pid) == *pid);
  CHECK(getpgid(*pid) == *pid);
  f.tree.signal_groups(SIGKILL);
  f.run_until_gone();
  CHECK(f.exits.at(0).signal == SIGKILL);
}

TEST_CASE("a group is not gone while a child of an ended worker is in it, and is signalled still") {
  Fixture f;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  // The grandchild holds fd 1 (our pipe) as long as it lives; the worker itself ends at once.
  const int saved = dup(1);
  dup2(ends[1], 1);
  REQUIRE(f.tree.start(0, shell("sh -c 'trap \"\" TERM; echo up; exec sleep 1000' & exit 0")));
  dup2(saved, 1);
  close(saved);
  close(ends[1]);
  char text[3];
  REQUIRE(read(ends[0], text, 3) == 3);
  net::Timer killer(f.loop);
  bool killed = false;
  killer.start(50, [&] {
    killed = true;
    f.tree.signal_groups(SIGKILL);
  });
  f.run_until_gone();
  CHECK(killed);
  CHECK(read(ends[0], text, 1) == 0);  // end of file: nobody holds the pipe any more
  close(ends[0]);
}

TEST_CASE("a program that cannot be executed is an error that says why, and leaves no child") {
  Fixture f;
  auto none = f.tree.start(0, {"/nonexistent/program", {"program"}, {}, {}});
  REQUIRE(!none);
  CHECK(none.error().what == "cannot execute /nonexistent/program");
  CHECK(none.error().reason == "No such file or directory");
  auto directory = f.tree.start(0, {"/tmp", {"tmp"}, {}, {}});
  REQUIRE(!directory);
  CHECK(directory.error().reason == "Permission denied");
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("a worker has no descriptor but the first three") {
  Fixture f;
  const int leaked = open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  REQUIRE(f.tree.start(0, shell("for fd in /proc/self/fd/*; do n=${fd##*/}; "
                                "[ $n -le 2 ] || [ $n -eq 255 ] || [ ! -e $fd ] || exit 9; done")));
  f.run_until_gone();
  CHECK(f.exits.at(0).text() == "exited with code 0");
  close(leaked);
}

TEST_CASE("a worker has the files whose descriptors have high numbers, each alone or one for both streams") {
  const auto pipe_pair = [] {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
  };
  const auto content = [](const UniqueFd& reading) {
    char bytes[64]{};
    return std::string(bytes, static_cast<std::size_t>(std::max<ssize_t>(read(reading.get(), bytes, sizeof bytes), 0)));
  };
  const auto high = [](const UniqueFd& file) { return UniqueFd(fcntl(file.get(), F_DUPFD_CLOEXEC, 600)); };
  const auto [out, out_end] = pipe_pair();
  const auto [err, err_end] = pipe_pair();
  const UniqueFd high_out = high(out_end);
  const UniqueFd high_err = high(err_end);
  const auto run = [](int standard_output, int standard_error) {
    Fixture f;
    Command command = shell("for fd in /proc/self/fd/*; do n=$((n+1)); done; echo $n; echo err >&2");
    command.standard_output = standard_output;
    command.standard_error = standard_error;
    REQUIRE(f.tree.start(0, command));
    f.run_until_gone();
    CHECK(f.exits.at(0).success());
  };
  // These are the standard streams, and the directory that is listed.
  run(high_out.get(), high_err.get());
  CHECK(content(out) == "4\n");
  CHECK(content(err) == "err\n");
  run(out_end.get(), high_err.get());
  CHECK(content(out) == "4\n");
  CHECK(content(err) == "err\n");
  run(high_out.get(), high_out.get());
  CHECK(content(out) == "4\nerr\n");
}

TEST_CASE("a worker finds SIGPIPE default and the signal mask as the launcher found it") {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before {};
  sigaction(SIGPIPE, &ignore, &before);
  sigset_t found;
  sigemptyset(&found);
  sigaddset(&found, SIGUSR1);
  sigset_t mask;
  sigprocmask(SIG_SETMASK, &found, &mask);
  {
    Fixture f;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    // The bit of SIGUSR1 alone; not that of SIGPIPE. Others may have been ignored when the tests were started. There is
    // no shell between, which would change the mask.
    const std::vector<std::string> lines{"^SigBlk:.0*200$", "^SigIgn:.*[02468ace]...$"};
    for (int rank = 0; rank < 2; ++rank) {
      REQUIRE(f.tree.start(rank,
                           {.path = "/bin/grep",
                            .arguments = {"grep", "-q", lines.at(static_cast<std::size_t>(rank)), "/proc/self/status"},
                            .environment = {},
                            .variables = {}}));
    }
    f.run_until_gone();
    CHECK(f.exits.at(0).text() == "exited with code 0");
    CHECK(f.exits.at(1).text() == "exited with code 0");
  }
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  sigaction(SIGPIPE, &before, nullptr);
}

TEST_CASE("what a helper that is killed leaves behind is killed with it, a daemon too") {
  Fixture f;
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  Command command = shell("setsid sh -c 'echo $$; exec sleep 1000' & wait");
  command.standard_output = ends[1];
  REQUIRE(f.tree.start_helper(command));
  close(ends[1]);
  char text[32] = {};
  REQUIRE(read(ends[0], text, sizeof text - 1) > 0);
  f.tree.kill_helper();
  f.loop.run();
  CHECK(f.helper_exit == ExitStatus{.signal = SIGKILL});
  // The daemon had the pipe, too.
  pollfd polled = {ends[0], POLLIN, 0};
  CHECK(poll(&polled, 1, 10'000) == 1);
  CHECK((polled.revents & POLLHUP) != 0);
  close(ends[0]);
}

TEST_CASE("a process that looks at workers is none of them: it is not signalled with them, nor waited for") {
  Fixture f;
  REQUIRE(f.tree.start(0, shell("exec sleep 1000")));
  const auto onlooker = f.tree.start_onlooker(shell("trap 'exit 3' TERM; sleep 1000 & wait"));
  const auto other = f.tree.start_onlooker(shell("exit 0"));
  REQUIRE(onlooker);
  REQUIRE(other);
  CHECK(getsid(*onlooker) == *onlooker);
  f.tree.signal_groups(SIGTERM);
  f.tree.signal_groups(SIGKILL);
  f.run_until_gone();
  CHECK(f.exits.size() == 1);
  CHECK(kill(*onlooker, 0) == 0);
  CHECK(f.tree.survivors().empty());
  f.tree.end_onlooker(*onlooker);
  f.tree.end_onlooker(*onlooker);
  f.tree.end_onlooker(1);  // nobody's
  // It is reaped without a call.
  net::Timer timer(f.loop);
  int error = 0;
  std::function<void()> look = [&] {
    error = kill(*onlooker, 0) == 0 ? 0 : errno;
    if (error != 0) return f.loop.stop();
    timer.start(1, look);
  };
  look();
  f.loop.run();
  CHECK(error == ESRCH);
}

TEST_CASE("a worker that handles a signal gets it alone, and its helper gets it when the worker has ended") {
  Fixture f;
  WithHelper made;
  f.tree.adopt(0, made.worker);
  CHECK(f.tree.signal_groups(SIGUSR1, {}) == std::vector<int>{0});
  kill(made.helper, SIGUSR2);
  CHECK(made.next() == SIGUSR2);  // of both, SIGUSR1 would be taken first
  made.lives = UniqueFd();
  net::Timer killer(f.loop);
  killer.start(10'000, [&] { f.tree.signal_groups(SIGKILL); });
  f.run_until_gone();
  CHECK(f.exits.at(0).success());
  CHECK(made.next() == SIGUSR1);
}

TEST_CASE("helpers of a worker that got a signal alone do not get it later, where they are not to") {
  Fixture f;
  WithHelper made;
  f.tree.adopt(0, made.worker);
  CHECK(f.tree.signal_groups(SIGUSR1, {.helpers_follow = false}) == std::vector<int>{0});
  f.after_exit = [&] {
    kill(made.helper, SIGUSR2);
    CHECK(made.next() == SIGUSR2);
    f.tree.signal_groups(SIGKILL);
  };
  made.lives = UniqueFd();
  f.run_until_gone();
  CHECK(made.next() == 0);
}

TEST_CASE(
    "a signal that a worker does not handle is its whole group's at once, and one for other workers is nobody's") {
  Fixture f;
  WithHelper made;
  f.tree.adopt(0, made.worker);
  CHECK(f.tree.signal_groups(SIGUSR1, {.spared = 0}).empty());
  CHECK(f.tree.signal_groups(SIGUSR1, {.only = 1}).empty());
  kill(made.helper, SIGUSR2);
  CHECK(made.next() == SIGUSR2);
  f.tree.signal_groups(SIGTERM, {.only = 0});
  f.run_until_gone();
  CHECK(f.exits.at(0).signal == SIGTERM);
  CHECK(made.next() == 0);  // the helper is gone, too
}
