#include "cli/run/check_runner.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "health/messages/messages.h"

using namespace elastic;
using namespace elastic::run;
using namespace elastic::health;

namespace {

// A runner whose probe is played by the test, at the other end of the channel.
struct Played {
  Played() { ask(0, "{}"); }
  void ask(std::uint32_t phase, std::string order) {
    runner.perform({.round = 3, .phase = phase, .order = std::move(order)});
  }
  std::string heard() {
    std::string line;
    for (char byte = 0; recv(probe.get(), &byte, 1, 0) == 1 && byte != '\n';) line += byte;
    return line;
  }
  // The node's answer when its probe has written this.
  std::string answer_to(const std::string& line) {
    REQUIRE(send(probe.get(), (line + "\n").data(), line.size() + 1, MSG_NOSIGNAL) > 0);
    is_running = true;
    loop.run();
    is_running = false;
    return answer;
  }

  net::Loop loop;
  UniqueFd probe = {};
  std::string answer = {};
  bool is_running = false;
  CheckRunner runner{loop,
                     {},
                     {.on_checked =
                          [this](agent::NodeChecked checked) {
                            CHECK(checked.round == 3);
                            answer = std::move(checked.result);
                            if (is_running) loop.stop();
                          },
                      .start = [this](const process::Command& command) -> Result<pid_t> {
                        probe = UniqueFd(dup(command.standard_output));
                        return 1;
                      },
                      .kill = [this] { ++kills; }}};
  int kills = 0;
};

const std::string kRing = text_of(RingOrder{.rank = 1, .place = 1, .members = 2, .previous = {}, .next = {}});
const std::string kPairs = text_of(PairOrders{.rank = 1, .tests = {{.with = 0}}});

}  // namespace

TEST_CASE("orders of pairs and of a ring go to the probe as they are, and its answers back") {
  Played played;
  CHECK(played.answer_to("{\"port\":1}") == "{\"port\":1}");
  std::uint32_t phase = 0;
  for (const std::string& order : {kPairs, kRing}) {
    played.ask(++phase, order);
    CHECK(played.heard() == order);
    CHECK(played.answer_to("done") == "done");
  }
}

TEST_CASE("of a probe that dies each order is answered in its own form, and so are those after it") {
  for (const bool dies_in_ring : {true, false}) {
    Played played;
    played.answer_to("{\"port\":1}");
    played.ask(1, dies_in_ring ? kRing : kPairs);
    played.runner.exited({.signal = SIGKILL});
    const std::string killed = "its check process was killed by SIGKILL";
    CHECK(played.answer == (dies_in_ring ? text_of(RingResult{.why_not = killed})
                                         : text_of(PairResults{.tests = {{.with = 0, .why_not = killed}}})));
    played.ask(2, kRing);
    CHECK(played.answer == text_of(RingResult{.why_not = "its check process is not running"}));
    played.ask(3, kPairs);
    CHECK(played.answer == text_of(PairResults{.tests = {{.with = 0, .why_not = "its check process is not running"}}}));
  }
}

TEST_CASE("a probe that is left ends by itself, by the end of its channel, and one whose check is stopped is killed") {
  Played left;
  CHECK(left.runner.leave());
  char bytes[4096];
  ssize_t count = 0;
  while ((count = recv(left.probe.get(), bytes, sizeof bytes, 0)) > 0) {  // the orders of before
  }
  CHECK(count == 0);
  CHECK(left.kills == 0);
  CHECK(!left.runner.leave());
  left.runner.stop();
  CHECK(left.kills == 0);
  Played stopped;
  stopped.runner.stop();
  CHECK(stopped.kills == 1);
}
