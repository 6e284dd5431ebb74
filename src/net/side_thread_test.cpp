#include "src/net/side_thread.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

using namespace elastic::net;

namespace {

// Work that blocks until it is released.
struct Gate {
  std::promise<void> begun;
  std::promise<void> open;
  std::shared_future<void> opened = open.get_future().share();
  std::function<void()> work() {
    return [&begun = begun, opened = opened] {
      begun.set_value();
      opened.wait();
    };
  }
};

bool readable(int descriptor) {
  pollfd watched{descriptor, POLLIN, 0};
  return poll(&watched, 1, 0) == 1;
}

}  // namespace

TEST_CASE("jobs are done in order on another thread, and what follows them on ours") {
  SideThread side;
  std::vector<std::string> order;
  const std::thread::id here = std::this_thread::get_id();
  side.post(
      "a", [&] { order.push_back(std::this_thread::get_id() == here ? "a here" : "a there"); },
      [&] { order.push_back(std::this_thread::get_id() == here ? "after a" : "elsewhere"); });
  side.post("b", [&] { order.push_back("b"); });
  REQUIRE(side.wait(60'000));
  CHECK(readable(side.done_descriptor()));
  CHECK(side.run_done());
  CHECK(!side.run_done());
  CHECK(order == std::vector<std::string>{"a there", "b", "after a"});
  CHECK(!readable(side.done_descriptor()));
}

TEST_CASE("a job that hangs is told by name and holds up nobody else") {
  Gate gate;
  {
    SideThread side;
    CHECK(!side.stuck_for(0));
    side.post("/log/file", gate.work());
    side.post("behind it", [] { FAIL("dropped with the thread"); });
    gate.begun.get_future().wait();
    CHECK(side.stuck_for(0) == "/log/file");
    CHECK(!side.stuck_for(3'600'000));
    CHECK(!side.wait(1));
  }
  gate.open.set_value();
}

TEST_CASE("the end waits for jobs that follow from jobs, and gives up on one that hangs") {
  SideThread side;
  std::vector<std::string> order;
  side.post(
      "a", [&] { order.push_back("a"); },
      [&] {
        side.post(
            "b", [&] { order.push_back("b"); }, [&] { order.push_back("after b"); });
      });
  CHECK(side.finish(60'000));
  CHECK(order == std::vector<std::string>{"a", "b", "after b"});
  Gate gate;
  side.post("/log/file", gate.work());
  CHECK(!side.finish(1));
  gate.open.set_value();
  CHECK(side.finish(60'000));
}

TEST_CASE("where no thread can be had, a job is done at once, and what follows it as ever") {
  // This runs in a child process that may not make threads from then on, not even as root.
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    const bool limited = setrlimit(RLIMIT_NPROC, &none) == 0 && (geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
    SideThread side;
    std::string order;
    side.post(
        "a", [&] { order += "a"; }, [&] { order += " after"; });
    const bool at_once = order == "a" && side.wait(0) && readable(side.done_descriptor());
    side.run_done();
    _exit(limited && at_once && order == "a after" ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a thread that never had a job costs nothing to wait for") {
  SideThread side;
  CHECK(side.wait(0));
  side.run_done();
}
