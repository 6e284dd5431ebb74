#include "health/probe/command.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "src/base/text.h"
#include "src/base/unique_fd.h"

using namespace elastic;
using namespace elastic::health;
using How = CommandEnd::How;

namespace {

constexpr std::int64_t kLongMs = 60'000;

const std::vector<std::string> kEnvironment = {"PATH=/usr/bin:/bin", "COLOUR=red", "SIZE=large"};

CommandsEnd run(const std::vector<ShellCommand>& commands, CommandRules rules = {}, std::int64_t after_ms = kLongMs) {
  rules.environment = kEnvironment;
  if (rules.output_bytes == 0) rules.output_bytes = 64 * 1024;
  return run_commands(commands, rules, Deadline(after_ms));
}

// Whether the process exists whose pid is the first word of the text.
bool is_alive(const std::string& output) {
  const auto pid = parse_int(split(trim(output), ' ').at(0));
  REQUIRE(pid);
  return kill(static_cast<pid_t>(*pid), 0) == 0;
}

bool nobody_is_left() { return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

}  // namespace

TEST_CASE("a command's exit status, signal and output are told, and it has the environment with its own variables") {
  const CommandsEnd end =
      run({{.text = "echo $COLOUR $SIZE; grep -zc ^SIZE= /proc/$$/environ; exit 3", .variables = {"SIZE=small"}}});
  REQUIRE(end.commands.size() == 1);
  CHECK(end.commands[0].how == How::kByItself);
  CHECK(end.commands[0].status == ExitStatus{.code = 3});
  CHECK(end.output == "red small\n1\n");
  CHECK(run({{.text = "kill -SEGV $$"}}).commands[0].status.signal == SIGSEGV);
}

TEST_CASE("of much output the end is kept") {
  const CommandsEnd end = run({{.text = "head -c 300000 /dev/zero | tr '\\0' a; echo end"}}, {.output_bytes = 1000});
  CHECK(end.output == std::string(996, 'a') + "end\n");
}

TEST_CASE("commands run at the same time") {
  // Each of the two commands waits for the other.
  char directory[] = "/tmp/command_test.XXXXXX";
  REQUIRE(mkdtemp(directory) != nullptr);
  const std::string at = directory;
  const CommandsEnd end = run({{.text = format("mkfifo {0}/a; echo x > {0}/a", at)},
                               {.text = format("until [ -p {0}/a ]; do :; done; cat {0}/a; rm -r {0}", at)}});
  CHECK(end.output == "x\n");
  for (const CommandEnd& command : end.commands) CHECK(command.status.success());
}

TEST_CASE("at the deadline commands are killed with all that they have started") {
  const CommandsEnd end =
      run({{.text = "trap '' TERM INT; setsid sleep 1000 & wait"}, {.text = "sleep 1000"}}, {}, 100);
  for (const CommandEnd& command : end.commands) CHECK(command.how == How::kAtDeadline);
  CHECK(nobody_is_left());
}

TEST_CASE("what a command leaves behind is ended before it is told, daemons too") {
  for (const char* text :
       {"sleep 1000 & echo $!", "(setsid sh -c 'echo $$; exec sleep 1000' &) | { read pid; echo $pid; }"}) {
    CAPTURE(text);
    const CommandsEnd end = run({{.text = text}});
    CHECK(end.commands[0].status.success());
    CHECK(!is_alive(end.output));
    CHECK(nobody_is_left());
  }
}

TEST_CASE("one that ends may stop the others") {
  std::vector<std::size_t> asked;
  const CommandsEnd end =
      run({{.text = "sleep 1000"}, {.text = "exit 1"}, {.text = "sleep 1000"}}, {.goes_on = [&](std::size_t command) {
            asked.push_back(command);
            return false;
          }});
  CHECK(asked == std::vector<std::size_t>{1});
  CHECK(end.commands[0].how == How::kStopped);
  CHECK(end.commands[1].how == How::kByItself);
  CHECK(end.commands[2].how == How::kStopped);
}

TEST_CASE("news from elsewhere may stop them, and is asked about once") {
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const UniqueFd reader(ends[0]);
  { const UniqueFd writer(ends[1]); }
  int asked = 0;
  const auto answer = [&](bool goes_on) {
    return CommandRules{.news = reader.get(), .goes_on_after_news = [&asked, goes_on] {
                          ++asked;
                          return goes_on;
                        }};
  };
  CHECK(run({{.text = "sleep 1000"}}, answer(false)).commands[0].how == How::kStopped);
  CHECK(asked == 1);
  CHECK(run({{.text = "sleep 0.1"}}, answer(true)).commands[0].status == ExitStatus{});
  CHECK(asked == 2);
}

TEST_CASE("a command that cannot be started says why, and starts no other") {
  const CommandsEnd end = run({{.text = std::string(256 * 1024, ' ')}, {.text = "echo no"}});
  CHECK(end.commands[0].how == How::kNotStarted);
  CHECK(end.commands[0].why_not_started.find("/bin/sh") != std::string::npos);
  CHECK(end.commands[1].how == How::kNotStarted);
  CHECK(end.output.empty());
}

TEST_CASE("where SIGCHLD is ignored, exit codes are told all the same, and it is afterwards as it was") {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before {};
  REQUIRE(sigaction(SIGCHLD, &ignore, &before) == 0);
  CHECK(run({{.text = "exit 7"}}).commands[0].status.code == 7);
  struct sigaction now {};
  REQUIRE(sigaction(SIGCHLD, &before, &now) == 0);
  CHECK((now.sa_handler == SIG_IGN));
}
