#include "src/process/tree.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

using namespace elastic;
using namespace elastic::process;

namespace {

constexpr int kWorkers = 3;

// A barrier, and a worker's copy of its socket.
struct Fixture {
  net::Loop loop;
  std::unique_ptr<WorkerBarrier> gate = std::move(WorkerBarrier::make(loop, kWorkers).value());
  UniqueFd worker{dup(gate->workers_end())};

  void say(std::string_view text) {
    REQUIRE(send(worker.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    net::Timer once(loop);
    once.start(0, [this] { loop.stop(); });
    loop.run();
  }
  // Whether a worker that reads from its socket would see the end.
  bool is_open() {
    char byte = 0;
    const ssize_t bytes = recv(worker.get(), &byte, 1, MSG_DONTWAIT);
    REQUIRE((bytes == 0 || errno == EAGAIN));
    return bytes == 0;
  }
};

}  // namespace

TEST_CASE("the worker barrier opens when the last worker is done, by its message or by its end") {
  Fixture f;
  f.say("1");
  f.gate->done(0);
  CHECK(!f.is_open());
  f.say("2");
  CHECK(f.is_open());
}

TEST_CASE("the worker barrier counts nobody twice, and nobody that it does not know") {
  Fixture f;
  for (const std::string_view text : {"1", "1", "0", "-1", "3", "99999999999999999999", "", "{}"}) f.say(text);
  CHECK(!f.is_open());
  f.say("2");
  CHECK(f.is_open());
}

TEST_CASE("the worker barrier lets all go when it is opened, and when its owner goes") {
  Fixture opened;
  opened.gate->open();
  CHECK(opened.is_open());
  Fixture gone;
  gone.gate.reset();
  CHECK(gone.is_open());
}
