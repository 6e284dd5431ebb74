#include "cli/run/file_timers.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/run/reader_test_support.h"
#include "src/base/json.h"
#include "src/base/json_archive.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/process/clock.h"

using namespace elastic;
using namespace elastic::run;

namespace {

// How far a reader of the test's own comes with a worker's stack.
enum class Reads { kNothing, kKernelOnly, kAll };

void serve(int channel, const std::vector<std::pair<pid_t, Reads>>& how) {
  stacks::ReaderQuestion question;
  while (recv(channel, &question, sizeof question, MSG_WAITALL) == static_cast<ssize_t>(sizeof question)) {
    for (const auto& [pid, reads] : how) {
      if (pid != question.pid || reads == Reads::kNothing) continue;
      stacks::ReaderAnswer answer{.look = {.pid = pid, .threads = {{.id = pid, .frames = {{"load", "/a.py", 3}}}}}};
      for (const bool is_last : {false, true}) {
        answer.is_last = is_last;
        if (is_last && reads != Reads::kAll) continue;
        const std::string text = write_json(answer, JsonForm::kForgiving).dump() + "\n";
        if (send(channel, text.data(), text.size(), MSG_NOSIGNAL) < 0) return;
      }
    }
  }
}

struct Told {
  int signal = 0;  // by which the worker has ended
  report::ExpiredTimer timer = {};
};

// Workers whose timers expire, of each of which so much can be read.
std::vector<Told> expired(const std::vector<Reads>& reads) {
  log::set_output([](std::string_view) {});
  std::string directory = "/tmp/file_timers_XXXXXX";
  REQUIRE(mkdtemp(directory.data()) != nullptr);
  const FileTimerSettings settings{.are_served = true, .path = directory + "/timers"};
  std::vector<std::pair<pid_t, Reads>> how;
  std::vector<Told> told(reads.size());
  {
    net::Loop loop;
    FileTimers timers(loop, settings, "",
                      {.stacks = forked_readers([&](int channel) { serve(channel, how); }),
                       .on_signalled = [&](pid_t worker, report::ExpiredTimer timer) {
                         for (std::size_t i = 0; i < how.size(); ++i) {
                           if (how[i].first == worker) told[i].timer = std::move(timer);
                         }
                       }});
    REQUIRE(timers.variables().size() == 1);
    timers.begin_round(0);
    const UniqueFd fifo(open(settings.path.c_str(), O_WRONLY | O_CLOEXEC));
    std::vector<UniqueFd> pidfds;
    std::vector<std::unique_ptr<net::ReadWatch>> watches;
    std::size_t ended = 0;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        for (;;) pause();
      }
      how.emplace_back(pid, reads[i]);
      timers.started(static_cast<int>(i), pid);
      const std::string request =
          format("{{\"version\": 1, \"pid\": {}, \"scope_id\": \"x\", \"expiration_time\": 1, \"signal\": 9}}\n", pid);
      REQUIRE(write(fifo.get(), request.data(), request.size()) == static_cast<ssize_t>(request.size()));
      pidfds.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
      watches.push_back(std::make_unique<net::ReadWatch>(loop, pidfds.back().get(), [&, i] {
        watches[i].reset();
        int status = 0;
        CHECK(waitpid(how[i].first, &status, 0) == how[i].first);
        told[i].signal = WTERMSIG(status);
        if (++ended == reads.size()) loop.stop();
      }));
    }
    loop.run();
  }
  CHECK(access(settings.path.c_str(), F_OK) != 0);
  CHECK(rmdir(directory.c_str()) == 0);
  log::set_output({});
  return told;
}

}  // namespace

TEST_CASE("a worker whose timer has expired is signalled when its stack has been read") {
  const auto told = expired({Reads::kAll, Reads::kAll});
  for (const Told& worker : told) {
    CHECK(worker.signal == SIGKILL);
    CHECK(worker.timer.stack == report::HangStack{{.function = "load", .file = "/a.py", .line = 3}});
    CHECK(worker.timer.problem.empty());
  }
}

TEST_CASE("a worker whose memory cannot be read is signalled in time, and the stacks of others are there") {
  const std::int64_t began_ms = process::monotonic_ms();
  const auto told = expired({Reads::kKernelOnly, Reads::kAll});
  CHECK(process::monotonic_ms() - began_ms < 5'000);
  CHECK(told[0].signal == SIGKILL);
  CHECK(told[0].timer.problem == "its memory could not be read within 1 s");
  CHECK(told[1].signal == SIGKILL);
  CHECK(told[1].timer.stack.size() == 1);
}

TEST_CASE("workers are signalled in time where nothing of them can be read") {
  const std::int64_t began_ms = process::monotonic_ms();
  const auto told = expired({Reads::kNothing, Reads::kNothing});
  CHECK(process::monotonic_ms() - began_ms < 4'500);  // before a single reader would be given up
  for (const Told& worker : told) {
    CHECK(worker.signal == SIGKILL);
    CHECK(worker.timer.problem == "there was no time for it");
  }
}
