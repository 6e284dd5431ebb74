#include "src/process/local_tasks.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "src/base/text.h"

using namespace elastic;
using namespace elastic::process;

namespace {

constexpr int kNoWord = 77;

LocalTaskPlace place_of(int index, int members, const char* test) {
  return {.name = format("test-{}-{}", getpid(), test), .index = index, .members = members};
}

// Starts a process that runs `work` and exits with its result.
pid_t start(const std::function<int()>& work) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);  // so that a failing test does not hang
    _exit(work());
  }
  return pid;
}

pid_t start_waiting(const LocalTaskPlace& place, int met = -1) {
  return start([&] {
    const auto status = wait_for_local_tasks(place, [&] {
      if (met >= 0) (void)!write(met, "m", 1);
    });
    return status ? *status : kNoWord;
  });
}

int status_of(pid_t pid) {
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("all of a company end as the one that launches does, whoever came first") {
  const LocalTaskPlace place = place_of(0, 4, "all");
  std::vector<pid_t> others;
  others.push_back(start_waiting({place.name, 1, 4}));
  auto host = LocalTasksHost::open(place);
  REQUIRE(host);
  others.push_back(start_waiting({place.name, 2, 4}));
  others.push_back(start_waiting({place.name, 3, 4}));
  host->tell_status(42);
  for (const pid_t pid : others) CHECK(status_of(pid) == 42);
}

TEST_CASE("who waits does not end by a signal that the whole job gets, and notices when the launching one is killed") {
  const LocalTaskPlace place = place_of(0, 2, "signals");
  std::array<int, 2> met{};
  REQUIRE(pipe(met.data()) == 0);
  const pid_t other =
      start_waiting({place.name, 1, 2}, met[1]);  // forked before open(), so that it does not inherit our socket
  auto host = LocalTasksHost::open(place);
  REQUIRE(host);
  char word = 0;
  REQUIRE(read(met[0], &word, 1) == 1);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) REQUIRE(kill(other, signal) == 0);
  host = LocalTasksHost();  // as the kernel does when task 0 is killed
  CHECK(status_of(other) == kNoWord);
  close(met[0]);
  close(met[1]);
}

TEST_CASE("a company's name that is taken is an error, and one too long for a socket") {
  const LocalTaskPlace place = place_of(0, 2, "taken");
  const auto first = LocalTasksHost::open(place);
  REQUIRE(first);
  const auto second = LocalTasksHost::open(place);
  REQUIRE_FALSE(second);
  CHECK(second.error().reason == "Address already in use");
  CHECK_FALSE(LocalTasksHost::open({.name = std::string(200, 'n'), .index = 0, .members = 2}));
}
