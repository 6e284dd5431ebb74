#include "rendezvous/agent/kill_ladder.h"

#include <doctest/doctest.h>

#include <csignal>

using namespace elastic;
using namespace elastic::agent;

namespace {

using Cause = SignalWorkers::Cause;

struct Swept {
  explicit Swept(std::int64_t stuck_timeout_ms = 5000) : kill_ladder(stuck_timeout_ms) {
    kill_ladder.begin(SIGTERM, Cause::kFromOutside, 30'000, begun);
  }
  // The timer fires; this must not be the last step.
  Effects next() {
    Effects out;
    CHECK(!kill_ladder.next(out));
    return out;
  }
  Effects named(const char* survivors) {
    Effects out;
    kill_ladder.named(survivors, out);
    return out;
  }
  std::string what() const { return kill_ladder.waiting("rank 3 failed", "2 workers to end").what; }

  KillLadder kill_ladder;
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
  CHECK(!swept.kill_ladder.has_killed());

  const Effects killed = swept.next();
  CHECK(killed.size() == 2);
  is_kill(killed);
  CHECK(swept.kill_ladder.has_killed());

  const Effects naming = swept.next();
  REQUIRE(naming.size() == 2);
  CHECK(std::holds_alternative<NameSurvivors>(naming[0]));
  CHECK(std::get<StartTimer>(naming[1]).delay_ms == 4000);
  CHECK(std::get<Warn>(swept.named("process 7").at(0)).text == "process 7 has not exited after SIGKILL");
  CHECK(swept.kill_ladder.left_behind().empty());

  Effects out;
  CHECK(swept.kill_ladder.next(out));
  REQUIRE(out.size() == 1);
  CHECK(std::holds_alternative<AbandonWorkers>(out[0]));
  CHECK(swept.kill_ladder.left_behind() == "process 7");
  swept.kill_ladder.forget_left_behind();
  CHECK(swept.kill_ladder.left_behind().empty());
}

TEST_CASE("processes that nobody has named are given up without a name, and at once if there is no time for more") {
  Swept swept(500);
  swept.next();
  CHECK(std::get<StartTimer>(swept.next().at(1)).delay_ms == 0);
  Effects out;
  CHECK(swept.kill_ladder.next(out));
  CHECK(swept.kill_ladder.left_behind() == "a worker");
}

TEST_CASE(
    "a kill ladder that begins with SIGKILL awaits the end, and one that is under way sends SIGKILL and no more") {
  KillLadder kill_ladder(5000);
  Effects begun;
  kill_ladder.begin_with_kill(begun);
  REQUIRE(begun.size() == 3);
  is_kill(begun);
  CHECK(std::holds_alternative<AwaitAllGone>(begun[2]));
  Swept swept;
  Effects killed;
  swept.kill_ladder.kill(killed);
  CHECK(killed.size() == 2);
  is_kill(killed);
  CHECK(std::holds_alternative<NameSurvivors>(swept.next().at(0)));
}

TEST_CASE("a kill ladder says whom it waits for and what happens at the end, and names processes of its own alone") {
  Swept swept;
  CHECK(swept.what() == "rank 3 failed: waiting for 2 workers to end");
  CHECK(swept.kill_ladder.waiting("", "").at_end == "killed");
  CHECK(swept.kill_ladder.waiting("", "").unusual);
  swept.next();
  CHECK(swept.what() == "sent SIGKILL: waiting for 2 workers to end");
  CHECK(swept.kill_ladder.waiting("", "").at_end == "giving up");
  swept.next();
  swept.named("process 7");
  CHECK(swept.what() == "sent SIGKILL: waiting for process 7");
  Effects out;
  swept.kill_ladder.begin(SIGTERM, Cause::kOurs, 30'000, out);
  swept.next();
  CHECK(swept.what() == "sent SIGKILL: waiting for 2 workers to end");
  swept.named("process 8");
  swept.kill_ladder.begin_with_kill(out);
  CHECK(swept.what() == "sent SIGKILL: waiting for 2 workers to end");
}

TEST_CASE("of a round that hangs nobody is waited for longer than 5 s, and who is stopped goes on to its end") {
  KillLadder kill_ladder(5000);
  Effects out;
  kill_ladder.begin_of_hang({.hangs = true}, 30'000, out);
  REQUIRE(out.size() == 4);
  CHECK(std::get<SignalWorkers>(out[0]).signal == SIGTERM);
  CHECK(std::get<SignalWorkers>(out[0]).cause == Cause::kOthersOrder);
  CHECK(std::get<StartTimer>(out[1]).delay_ms == 5000);
  CHECK(std::holds_alternative<AwaitAllGone>(out[2]));
  CHECK(std::get<SignalWorkers>(out[3]).signal == SIGCONT);
  Effects killed;
  CHECK(!kill_ladder.next(killed));
  is_kill(killed);
  // The user's own time may be shorter.
  Effects shorter;
  kill_ladder.begin_of_hang({.hangs = true}, 1000, shorter);
  CHECK(std::get<StartTimer>(shorter[1]).delay_ms == 1000);
}

TEST_CASE("workers whose stacks could not be read get SIGABRT first, 3 s before SIGTERM") {
  KillLadder kill_ladder(5000);
  Effects out;
  kill_ladder.begin_of_hang({.hangs = true, .aborts = true}, 30'000, out);
  CHECK(std::get<SignalWorkers>(out[0]).signal == SIGABRT);
  CHECK(std::get<StartTimer>(out[1]).delay_ms == 3000);
  CHECK(!kill_ladder.has_killed());
  Effects terminated;
  CHECK(!kill_ladder.next(terminated));
  REQUIRE(terminated.size() == 2);
  CHECK(std::get<SignalWorkers>(terminated[0]).signal == SIGTERM);
  CHECK(std::get<StartTimer>(terminated[1]).delay_ms == 5000);
  CHECK(!kill_ladder.has_killed());
  Effects killed;
  CHECK(!kill_ladder.next(killed));
  is_kill(killed);
}

TEST_CASE("where dumps are asked for nobody is signalled before they are there, or 5 s are over") {
  for (const bool aborts : {false, true}) {
    for (const bool are_there : {false, true}) {
      CAPTURE(aborts);
      CAPTURE(are_there);
      KillLadder kill_ladder(5000);
      Effects out;
      kill_ladder.begin_of_hang({.round = 4, .hangs = true, .aborts = aborts, .dumps = true}, 1000, out);
      REQUIRE(out.size() == 2);
      CHECK(std::get<AwaitDumps>(out[0]).round == 4);
      CHECK(std::get<StartTimer>(out[1]).delay_ms == 5000);
      CHECK(!kill_ladder.has_killed());
      CHECK(kill_ladder.waiting("stopping", "2 workers").what == "stopping: waiting for dumps of the flight recorders");
      Effects signalled;
      if (are_there) kill_ladder.dumps_awaited(signalled);
      if (!are_there) CHECK(!kill_ladder.next(signalled));
      REQUIRE(signalled.size() == 4);
      CHECK(std::get<SignalWorkers>(signalled[0]).signal == (aborts ? SIGABRT : SIGTERM));
      CHECK(std::get<StartTimer>(signalled[1]).delay_ms == (aborts ? 3000 : 1000));
      CHECK(std::holds_alternative<AwaitAllGone>(signalled[2]));
      CHECK(std::get<SignalWorkers>(signalled[3]).signal == SIGCONT);
      Effects late;
      kill_ladder.dumps_awaited(late);
      CHECK(late.empty());
    }
  }
}

TEST_CASE("who insists while dumps are awaited has processes killed, and their end awaited") {
  KillLadder kill_ladder(5000);
  Effects out;
  kill_ladder.begin_of_hang({.hangs = true, .dumps = true}, 30'000, out);
  Effects killed;
  kill_ladder.kill(killed);
  REQUIRE(killed.size() == 3);
  is_kill(killed);
  CHECK(std::holds_alternative<AwaitAllGone>(killed[2]));
}
