#include "src/output/lines/status_line.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

using namespace elastic;
using namespace elastic::output;

namespace {

constexpr std::size_t kWide = 1000;
constexpr const char* kErase = "\r\x1b[K";

Waiting stop() {
  return {.what = "stopping on SIGTERM: waiting for 4 workers to end (ranks 0-3)",
          .since_ms = 5000,
          .until_ms = 35'000,
          .at_end = "killed",
          .hint = "press Ctrl-C again to kill them now"};
}

std::string drawn(const std::string& text) { return "\r" + text + "\x1b[K"; }

}  // namespace

TEST_CASE("a duration is told in its two largest units") {
  CHECK(duration_text(0) == "0 s");
  CHECK(duration_text(59'999) == "59 s");
  CHECK(duration_text(60'000) == "1 m 0 s");
  CHECK(duration_text(130'000) == "2 m 10 s");
  CHECK(duration_text(3'600'000) == "1 h 0 m");
  CHECK(duration_text(90'061'000) == "25 h 1 m");
}

TEST_CASE("the status line says what is waited for, how long still, and what the user can do") {
  CHECK(status_text(stop(), 6000, kWide) ==
        "elastic-run: stopping on SIGTERM: waiting for 4 workers to end (ranks 0-3), killed in 29 s; press Ctrl-C "
        "again to kill them now");
  CHECK(status_text(stop(), 6001, kWide).find("killed in 29 s") != std::string::npos);
  CHECK(status_text(stop(), 40'000, kWide).find("killed in 0 s") != std::string::npos);
}

TEST_CASE("a wait whose end is a failure says how much of its time is over, one without an end how long it lasts") {
  Waiting nodes{.what = "3 of 4 nodes are here; waiting for 1 more", .since_ms = 1000, .until_ms = 901'000};
  CHECK(status_text(nodes, 131'000, kWide) ==
        "elastic-run: 3 of 4 nodes are here; waiting for 1 more, 2 m 10 s of 15 m 0 s");
  nodes.until_ms.reset();
  CHECK(status_text(nodes, 131'000, kWide) == "elastic-run: 3 of 4 nodes are here; waiting for 1 more, 2 m 10 s");
}

TEST_CASE("the status line is shorter than the terminal is wide, and keeps its time the longest") {
  const std::string full = status_text(stop(), 6000, kWide);
  for (std::size_t columns = 1; columns <= full.size() + 2; ++columns) {
    const std::string text = status_text(stop(), 6000, columns);
    CAPTURE(columns);
    CHECK(text.size() < columns);
    CHECK(text.find('\n') == std::string::npos);
  }
  CHECK(status_text(stop(), 6000, full.size() + 1) == full);
  CHECK(status_text(stop(), 6000, full.size()) ==
        "elastic-run: stopping on SIGTERM: waiting for 4 workers to end (ranks 0-3), killed in 29 s");
  CHECK(status_text(stop(), 6000, 60) == "elastic-run: stopping on SIGTERM: waitin..., killed in 29 s");
}

TEST_CASE("what is not ASCII takes one column, and what would move the cursor is not sent") {
  Waiting odd{.what = "sent SIGKILL: waiting for \xc3\xa9\xe4\xb8\xad\x1b[2J\n\xff", .since_ms = 0};
  CHECK(status_text(odd, 3000, kWide) == "elastic-run: sent SIGKILL: waiting for ???[2J??, 3 s");
}

TEST_CASE("a wait is told in a log with what it has taken and what comes then") {
  CHECK(waiting_text(stop(), 15'000) ==
        "stopping on SIGTERM: waiting for 4 workers to end (ranks 0-3), for 10 s, killed in 20 s");
  Waiting nodes{.what = "waiting for 1 more node", .since_ms = 0, .until_ms = 900'000};
  CHECK(waiting_text(nodes, 70'000) == "waiting for 1 more node, for 1 m 10 s of 15 m 0 s");
  nodes.until_ms.reset();
  CHECK(waiting_text(nodes, 10'000) == "waiting for 1 more node, for 10 s");
}

TEST_CASE("why something is waited for is told with its age") {
  const Waiting nodes{.what = "waiting for nodes: 1 of 2:3 is here",
                      .since_ms = 1000,
                      .until_ms = 601'000,
                      .because = "node 1 (n1) was lost: its connection was reset",
                      .because_ms = 500};
  CHECK(waiting_text(nodes, 13'000) ==
        "waiting for nodes: 1 of 2:3 is here, for 12 s of 10 m 0 s; 12 s ago node 1 (n1) was lost: its connection was "
        "reset");
  CHECK(status_text(nodes, 13'000, 200) ==
        "elastic-run: waiting for nodes: 1 of 2:3 is here; 12 s ago node 1 (n1) was lost: its connection was reset, "
        "12 s of 10 m 0 s");
}

TEST_CASE("the line appears after a second, is drawn again when it changes, and is erased") {
  StatusLine line;
  CHECK(line.draw(0, 80).empty());
  line.wait_for(Waiting{.what = "waiting", .since_ms = 5000});
  CHECK(line.draw(5999, 80).empty());
  CHECK(line.erase().empty());
  CHECK(line.draw(6000, 80) == drawn("elastic-run: waiting, 1 s"));
  CHECK(line.is_drawn());
  CHECK(line.draw(6250, 80).empty());
  CHECK(line.draw(7000, 80) == drawn("elastic-run: waiting, 2 s"));
  line.wait_for({});
  CHECK(line.draw(7001, 80) == kErase);
  CHECK(line.draw(7002, 80).empty());
  CHECK(!line.is_drawn());
}

TEST_CASE("the line comes sooner where the user has asked for what is waited for") {
  StatusLine line;
  line.wait_for(Waiting{.what = "waiting", .since_ms = 0, .by_user = true});
  CHECK(line.draw(249, 80).empty());
  CHECK(line.draw(250, 80) == drawn("elastic-run: waiting, 0 s"));
}

TEST_CASE("what is erased for other output is drawn again as it was") {
  StatusLine line;
  line.wait_for(Waiting{.what = "waiting", .since_ms = 0});
  CHECK(line.draw(1000, 80) == drawn("elastic-run: waiting, 1 s"));
  CHECK(line.erase() == kErase);
  CHECK(line.erase().empty());
  CHECK(line.draw(1100, 80) == drawn("elastic-run: waiting, 1 s"));
}

TEST_CASE("a terminal that became too narrow, or nobody's, has no line") {
  StatusLine line;
  line.wait_for(Waiting{.what = "waiting", .since_ms = 0});
  CHECK(!line.draw(1000, 20).empty());
  CHECK(line.draw(2000, 19) == kErase);
  CHECK(line.draw(3000, 0).empty());
}

TEST_CASE("a log hears of a wait for other nodes after 3 s, and of its advice once, after 3 s or after one") {
  WaitLog log;
  Waiting nodes{.what = "a", .since_ms = 1000, .advice = "do this", .for_others = true};
  CHECK(!log.due(nodes, 3'999));
  CHECK(!log.advice_due(nodes, 3'999));
  CHECK(log.advice_due(nodes, 4'000));
  CHECK(log.due(nodes, 4'000));
  nodes.since_ms = 997;  // read from another clock
  CHECK(!log.due(nodes, 33'999));
  nodes.since_ms = 1002;
  CHECK(log.due(nodes, 34'000));
  CHECK(!log.advice_due(nodes, 34'000));
  nodes.advice = "do that";
  nodes.advice_at_once = true;
  nodes.since_ms = 50'000;
  CHECK(!log.advice_due(nodes, 50'999));
  CHECK(log.advice_due(nodes, 51'000));
  nodes.advice.clear();
  CHECK(!log.advice_due(nodes, 60'000));
}

TEST_CASE("the first line of a wait never says less than 10 s, also if its begin is read a little later again") {
  WaitLog log;
  Waiting waiting{.what = "a", .since_ms = 1000};
  CHECK(!log.due(waiting, 1000));
  waiting.since_ms = 1040;
  CHECK(!log.due(waiting, 11'020));
  CHECK(log.due(waiting, 11'040));
}

TEST_CASE("a log hears of a wait after 10 s, then every 30 s; of the next one again after 10 s") {
  WaitLog log;
  const Waiting first{.what = "a", .since_ms = 1000};
  CHECK(!log.due(first, 1000));
  CHECK(!log.due(first, 10'999));
  CHECK(log.due(first, 11'000));
  CHECK(!log.due(first, 11'000));
  CHECK(!log.due(first, 40'999));
  CHECK(log.due(first, 41'000));
  const Waiting second{.what = "b", .since_ms = 71'500};
  CHECK(!log.due(second, 72'000));
  CHECK(log.due(second, 81'500));
}
