#include "rendezvous/agent/node_timer.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::agent;

namespace {

// A timer, whose effects are followed as the life cycle does.
struct Timed {
  // The delay of the timer that these effects start; empty: they start none.
  std::optional<std::int64_t> follow(const Effects& effects) {
    timer.follow(effects, now_ms);
    for (const Effect& effect : effects) {
      if (const auto* started = std::get_if<StartTimer>(&effect)) return started->delay_ms;
    }
    return {};
  }
  void pause() {
    Effects out;
    timer.pause(now_ms, out);
    follow(out);
  }
  std::optional<std::int64_t> resume() {
    Effects out;
    timer.resume(out);
    return follow(out);
  }
  std::optional<std::int64_t> shorten(std::int64_t longest_ms) {
    Effects out;
    timer.shorten(longest_ms, now_ms, out);
    return follow(out);
  }

  NodeTimer timer;
  std::int64_t now_ms = 1000;
};

}  // namespace

TEST_CASE("a timer follows the last effect that starts or stops it, until it fires") {
  Timed timed;
  CHECK(!timed.timer.until_ms());
  timed.follow({StartTimer{50}, CloseStore{}, StopTimer{}, StartTimer{200}});
  CHECK(timed.timer.until_ms() == 1200);
  timed.follow({CloseStore{}});
  CHECK(timed.timer.until_ms() == 1200);
  timed.timer.fired();
  CHECK(!timed.timer.until_ms());
  timed.follow({StartTimer{50}, StopTimer{}});
  CHECK(!timed.timer.until_ms());
}

TEST_CASE("what is left of a timer stands still from a pause until the node goes on, and once only") {
  Timed timed;
  timed.follow({StartTimer{500}});
  timed.now_ms = 1100;
  timed.pause();
  CHECK(!timed.timer.until_ms());
  timed.now_ms = 9000;
  timed.pause();  // a second SIGTSTP
  CHECK(timed.resume() == 400);
  CHECK(timed.timer.until_ms() == 9400);
  CHECK(!timed.resume());
}

TEST_CASE("a pause after the time of a timer leaves it nothing, and one without a timer starts none later") {
  Timed late;
  late.follow({StartTimer{500}});
  late.now_ms = 2000;
  late.pause();
  CHECK(late.resume() == 0);
  Timed without;
  without.pause();
  CHECK(!without.resume());
}

TEST_CASE("a timer is shortened and never lengthened, and none is started by it") {
  Timed timed;
  CHECK(!timed.shorten(100));
  timed.follow({StartTimer{500}});
  CHECK(timed.shorten(300) == 300);
  timed.now_ms = 1200;
  CHECK(timed.shorten(300) == 100);
  timed.now_ms = 2000;
  CHECK(timed.shorten(300) == 0);
}
