#include "rendezvous/agent/shared_signals.h"

#include <doctest/doctest.h>

#include <csignal>

using namespace elastic;
using namespace elastic::agent;

namespace {

using Cause = SignalWorkers::Cause;
using Signals = std::vector<int>;

}  // namespace

TEST_CASE("a signal that the launcher got, too, is not handed to workers that have had it") {
  SharedSignals signals;
  signals.workers_began();
  SUBCASE("the launcher before the outer process") {
    signals.witnessed(SIGUSR1, 1000);
    CHECK_FALSE(signals.ordered({SIGUSR1, Cause::kFromOutside}, 1003));
  }
  SUBCASE("the launcher after it") {
    CHECK_FALSE(signals.ordered({SIGUSR1, Cause::kFromOutside}, 1000));
    CHECK(signals.due_ms() == 1500);
    signals.witnessed(SIGUSR1, 1499);
  }
  CHECK_FALSE(signals.due_ms());
  CHECK(signals.take_due(10'000).empty());
}

TEST_CASE("a signal that only the outer process got is handed to the workers when the wait for a witness is over") {
  SharedSignals signals;
  CHECK_FALSE(signals.ordered({SIGUSR1, Cause::kFromOutside}, 1000));
  CHECK(signals.take_due(1499).empty());
  CHECK(signals.take_due(1500) == Signals{SIGUSR1});
  CHECK_FALSE(signals.due_ms());
  SUBCASE("and at once from then on") {
    CHECK(signals.ordered({SIGUSR1, Cause::kFromOutside}, 5000));
    CHECK(signals.ordered({SIGTERM, Cause::kOthersOrder}, 6000));
  }
  SUBCASE("unless a witness shows otherwise") {
    signals.witnessed(SIGUSR1, 5000);
    CHECK_FALSE(signals.ordered({SIGUSR1, Cause::kFromOutside}, 5001));
    CHECK_FALSE(signals.ordered({SIGTERM, Cause::kFromOutside}, 9000));
    CHECK(signals.due_ms() == 9500);
  }
}

TEST_CASE("each signal needs a witness of its own, of its own number and not long ago") {
  SharedSignals signals;
  signals.witnessed(SIGUSR1, 1000);
  CHECK_FALSE(signals.ordered({SIGTERM, Cause::kFromOutside}, 1001));
  CHECK(signals.due_ms() == 1501);
  CHECK_FALSE(signals.ordered({SIGUSR1, Cause::kFromOutside}, 1002));
  CHECK(signals.due_ms() == 1501);
  CHECK_FALSE(signals.ordered({SIGUSR1, Cause::kFromOutside}, 1003));  // one signal of its number matches one order
  CHECK(signals.take_due(1503) == Signals{SIGUSR1, SIGTERM});
  signals.witnessed(SIGTERM, 10'000);
  CHECK_FALSE(signals.ordered({SIGTERM, Cause::kFromOutside}, 12'001));
  CHECK(signals.due_ms() == 12'501);
}

TEST_CASE("an end that other nodes ask for is put off for a shorter while, one of our own is not") {
  SharedSignals signals;
  CHECK_FALSE(signals.ordered({SIGTERM, Cause::kOthersOrder}, 1000));
  CHECK(signals.due_ms() == 1250);
  CHECK(signals.take_due(1250) == Signals{SIGTERM});
  CHECK(signals.ordered({SIGTERM, Cause::kOurs}, 1300));
  CHECK(signals.ordered({SIGKILL, Cause::kOurs}, 1300));
  // It was no order from outside: the launcher may still get the next one itself.
  CHECK_FALSE(signals.ordered({SIGTERM, Cause::kFromOutside}, 1400));
}

TEST_CASE("workers that have had their SIGTERM get no other, those of the next round do") {
  SharedSignals signals;
  signals.witnessed(SIGTERM, 1000);
  CHECK_FALSE(signals.ordered({SIGTERM, Cause::kFromOutside}, 1001));
  CHECK_FALSE(signals.ordered({SIGTERM, Cause::kOurs}, 20'000));
  CHECK(signals.ordered({SIGKILL, Cause::kOurs}, 20'000));
  signals.workers_began();
  CHECK(signals.ordered({SIGTERM, Cause::kOurs}, 21'000));
}

TEST_CASE("of two orders that are put off the first one's time counts") {
  SharedSignals signals;
  CHECK_FALSE(signals.ordered({SIGTERM, Cause::kOthersOrder}, 1000));
  CHECK_FALSE(signals.ordered({SIGTERM, Cause::kFromOutside}, 1100));
  CHECK(signals.due_ms() == 1250);
  CHECK(signals.ordered({SIGTERM, Cause::kOurs}, 1200));
  CHECK_FALSE(signals.due_ms());
}
