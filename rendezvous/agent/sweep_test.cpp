#include "rendezvous/agent/sweep.h"

#include <doctest/doctest.h>

#include <csignal>

using namespace elastic;
using namespace elastic::agent;

namespace {

using Cause = SignalWorkers::Cause;

struct Swept {
  explicit Swept(std::int64_t stuck_timeout_ms = 5000) : sweep(stuck_timeout_ms) {
    sweep.begin(SIGTERM, Cause::kFromOutside, 30'000, begun);
  }
  // The timer fires; this must not be the last step.
  Effects next() {
    Effects out;
    CHECK(!sweep.next(out));
    return out;
  }
  Effects named(const char* survivors) {
    Effects out;
    sweep.named(survivors, out);
    return out;
  }
  std::string what() const { return sweep.waiting("rank 3 failed", "2 workers to end").what; }

  Sweep sweep;
  Effects begun;
};

void is_kill(const Effects& effects) {
  CHECK(std::get<SignalWorkers>(effects.at(0)).signal == SIGKILL);
  CHECK(std::get<SignalWorkers>(effects.at(0)).cause == Cause::kOurs);
  CHECK(std::get<StartTimer>(effects.at(1)).delay_ms == 1000);
}

}  // namespace

TEST_CASE("processes get the signal, then SIGKILL, are named, and are given up in the end") {
  Swept swept;
  REQUIRE(swept.begun.size() == 3);
  CHECK(std::get<SignalWorkers>(swept.begun[0]).signal == SIGTERM);
  CHECK(std::get<SignalWorkers>(swept.begun[0]).cause == Cause::kFromOutside);
  CHECK(std::get<StartTimer>(swept.begun[1]).delay_ms == 30'000);
  CHECK(std::holds_alternative<AwaitAllGone>(swept.begun[2]));
  CHECK(!swept.sweep.has_killed());

  const Effects killed = swept.next();
  CHECK(killed.size() == 2);
  is_kill(killed);
  CHECK(swept.sweep.has_killed());

  const Effects naming = swept.next();
  REQUIRE(naming.size() == 2);
  CHECK(std::holds_alternative<NameSurvivors>(naming[0]));
  CHECK(std::get<StartTimer>(naming[1]).delay_ms == 4000);
  CHECK(std::get<Warn>(swept.named("process 7").at(0)).text == "process 7 has not exited after SIGKILL");
  CHECK(swept.sweep.left_behind().empty());

  Effects out;
  CHECK(swept.sweep.next(out));
  REQUIRE(out.size() == 1);
  CHECK(std::holds_alternative<AbandonWorkers>(out[0]));
  CHECK(swept.sweep.left_behind() == "process 7");
  swept.sweep.forget_left_behind();
  CHECK(swept.sweep.left_behind().empty());
}

TEST_CASE("processes that nobody has named are given up without a name, and at once if there is no time for more") {
  Swept swept(500);
  swept.next();
  CHECK(std::get<StartTimer>(swept.next().at(1)).delay_ms == 0);
  Effects out;
  CHECK(swept.sweep.next(out));
  CHECK(swept.sweep.left_behind() == "a worker");
}

TEST_CASE("a sweep that begins with SIGKILL awaits the end, and one that is under way sends SIGKILL and no more") {
  Sweep sweep(5000);
  Effects begun;
  sweep.begin_with_kill(begun);
  REQUIRE(begun.size() == 3);
  is_kill(begun);
  CHECK(std::holds_alternative<AwaitAllGone>(begun[2]));
  Swept swept;
  Effects killed;
  swept.sweep.kill(killed);
  CHECK(killed.size() == 2);
  is_kill(killed);
  CHECK(std::holds_alternative<NameSurvivors>(swept.next().at(0)));
}

TEST_CASE("a sweep says whom it waits for and what happens at the end; names only of its own processes") {
  Swept swept;
  CHECK(swept.what() == "rank 3 failed: waiting for 2 workers to end");
  CHECK(swept.sweep.waiting("", "").at_end == "killed");
  CHECK(swept.sweep.waiting("", "").unusual);
  swept.next();
  CHECK(swept.what() == "sent SIGKILL: waiting for 2 workers to end");
  CHECK(swept.sweep.waiting("", "").at_end == "giving up");
  swept.next();
  swept.named("process 7");
  CHECK(swept.what() == "sent SIGKILL: waiting for process 7");
  Effects out;
  swept.sweep.begin(SIGTERM, Cause::kOurs, 30'000, out);
  swept.next();
  CHECK(swept.what() == "sent SIGKILL: waiting for 2 workers to end");
  swept.named("process 8");
  swept.sweep.begin_with_kill(out);
  CHECK(swept.what() == "sent SIGKILL: waiting for 2 workers to end");
}

TEST_CASE("of a round that hangs nobody is waited for longer than 5 s, and who is stopped goes on to its end") {
  Sweep sweep(5000);
  Effects out;
  sweep.begin_of_hang({.hangs = true}, 30'000, out);
  REQUIRE(out.size() == 4);
  CHECK(std::get<SignalWorkers>(out[0]).signal == SIGTERM);
  CHECK(std::get<SignalWorkers>(out[0]).cause == Cause::kOthersOrder);
  CHECK(std::get<StartTimer>(out[1]).delay_ms == 5000);
  CHECK(std::holds_alternative<AwaitAllGone>(out[2]));
  CHECK(std::get<SignalWorkers>(out[3]).signal == SIGCONT);
  Effects killed;
  CHECK(!sweep.next(killed));
  is_kill(killed);
  // The user's own time may be shorter.
  Effects shorter;
  sweep.begin_of_hang({.hangs = true}, 1000, shorter);
  CHECK(std::get<StartTimer>(shorter[1]).delay_ms == 1000);
}

TEST_CASE("workers whose stacks could not be read get SIGABRT first, 3 s before SIGTERM") {
  Sweep sweep(5000);
  Effects out;
  sweep.begin_of_hang({.hangs = true, .aborts = true}, 30'000, out);
  CHECK(std::get<SignalWorkers>(out[0]).signal == SIGABRT);
  CHECK(std::get<StartTimer>(out[1]).delay_ms == 3000);
  CHECK(!sweep.has_killed());
  Effects terminated;
  CHECK(!sweep.next(terminated));
  REQUIRE(terminated.size() == 2);
  CHECK(std::get<SignalWorkers>(terminated[0]).signal == SIGTERM);
  CHECK(std::get<StartTimer>(terminated[1]).delay_ms == 5000);
  CHECK(!sweep.has_killed());
  Effects killed;
  CHECK(!sweep.next(killed));
  is_kill(killed);
}

TEST_CASE("where dumps are asked for nobody is signalled before they are there, or 5 s are over") {
  for (const bool aborts : {false, true}) {
    for (const bool are_there : {false, true}) {
      CAPTURE(aborts);
      CAPTURE(are_there);
      Sweep sweep(5000);
      Effects out;
      sweep.begin_of_hang({.round = 4, .hangs = true, .aborts = aborts, .dumps = true}, 1000, out);
      REQUIRE(out.size() == 2);
      CHECK(std::get<AwaitDumps>(out[0]).round == 4);
      CHECK(std::get<StartTimer>(out[1]).delay_ms == 5000);
      CHECK(!sweep.has_killed());
      CHECK(sweep.waiting("stopping", "2 workers").what == "stopping: waiting for dumps of the flight recorders");
      Effects signalled;
      if (are_there) sweep.dumps_awaited(signalled);
      if (!are_there) CHECK(!sweep.next(signalled));
      REQUIRE(signalled.size() == 4);
      CHECK(std::get<SignalWorkers>(signalled[0]).signal == (aborts ? SIGABRT : SIGTERM));
      CHECK(std::get<StartTimer>(signalled[1]).delay_ms == (aborts ? 3000 : 1000));
      CHECK(std::holds_alternative<AwaitAllGone>(signalled[2]));
      CHECK(std::get<SignalWorkers>(signalled[3]).signal == SIGCONT);
      Effects late;
      sweep.dumps_awaited(late);
      CHECK(late.empty());
    }
  }
}

TEST_CASE("who insists while dumps are awaited has processes killed, and their end awaited") {
  Sweep sweep(5000);
  Effects out;
  sweep.begin_of_hang({.hangs = true, .dumps = true}, 30'000, out);
  Effects killed;
  sweep.kill(killed);
  REQUIRE(killed.size() == 3);
  is_kill(killed);
  CHECK(std::holds_alternative<AwaitAllGone>(killed[2]));
}
