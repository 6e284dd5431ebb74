// Broken invariants of a node's life cycle and its parts are noticed.
#include <doctest/doctest.h>

#include <csignal>
#include <string>

#include "rendezvous/agent/lifecycle.h"
#include "src/base/check_test_support.h"

namespace elastic::agent {

// Breaks the invariants of a life cycle.
struct LifecycleBreaker {
  using State = Lifecycle::State;

  static void forget_job_result(Lifecycle& life) { life.job_result_.reset(); }
  static void judge(Lifecycle& life) { life.job_result_.emplace(); }
  static void leave_nothing(Lifecycle& life) { life.nothing_left_ = true; }
  static void dismiss(Lifecycle& life) { life.dismissed_ = true; }
  static void end_in_silence(Lifecycle& life) {
    life.state_ = State::kEnded;
    life.job_result_.emplace();
    life.nothing_left_ = life.dismissed_ = true;
    life.check_invariants({});
  }
  static void finish_too_early(Lifecycle& life) { life.check_invariants({Finish{}}); }
  static void linger(Lifecycle& life) { life.awaits_ = Lifecycle::Awaits::kOrder; }
  static void look_for_background(Lifecycle& life) { life.awaits_ = Lifecycle::Awaits::kBackground; }
  static void stop_timer(Lifecycle& life) { life.timer_ = {}; }
  static void detach(Lifecycle& life) { life.away_.emplace(); }
  static void want_details(Lifecycle& life) { life.details_.want(); }
  static void gather_details(Lifecycle& life) {
    Effects out;
    life.details_.want();
    life.details_.gather(out);
  }
  static void gather_again(Lifecycle& life) {
    life.details_.own_ = "Traceback";
    life.details_.want();
  }
  static void be_told(Lifecycle& life) { life.leaving_.signal_ = SIGTERM; }
  static void be_asked(Lifecycle& life) { life.leaving_.asked_ms_ = 5; }
  static void be_terminated(Lifecycle& life) {
    life.leaving_.terminated_ = true;
    life.leaving_.asked_ms_.reset();
  }
  static void be_ready(Lifecycle& life) { life.preparation_.run_with({}); }
  static void await_logs(Lifecycle& life) { life.preparation_.awaits_logs_ = true; }
  static void owe_a_store(Lifecycle& life) { life.preparation_.awaited_stores_ = -1; }
  static void fail(Lifecycle& life) { life.round_.failures_.emplace_back(); }
  static void end_workers(Lifecycle& life) {
    for (auto& worker : life.round_.workers_) worker.exited = true;
  }
  static void begin_workers_again(Lifecycle& life) {
    for (auto& worker : life.round_.workers_) worker.exited = false;
  }
  static void fail_twice(Lifecycle& life) {
    end_workers(life);
    life.round_.failures_.resize(2);
  }
  static void find_crash(Lifecycle& life) { life.round_.found(protocol::Crash{}); }
};

namespace {

using namespace protocol;
using Breaker = LifecycleBreaker;

// A node of two workers.
struct Node {
  Node& on(const Event& event) {
    life.on_event(event, now_ms);
    return *this;
  }
  Node& from(const CoordinatorMessage& message) { return on(FromCoordinator{message}); }
  Node& prepare() { return from(PrepareRound{.max_restarts = 3, .place = {0, 2, 0, 4, 0, 4}, .membership = 9}); }
  Node& run() {
    prepare().from(RunWorkers{0, {"h", 1}});
    return on(WorkerStarted{0, 100}).on(WorkerStarted{1, 101});
  }
  Node& succeed() { return run().on(WorkerExited{0, {}, 5}).on(WorkerExited{1, {}, 5}); }
  Node& fail() { return run().on(WorkerExited{1, {.code = 3}, 5}); }
  // Its job has failed because of a worker here, whose details it gathers.
  Node& gather() {
    const JobResult job_result{.outcome = JobResult::Outcome::kFailed,
                               .failures = {{.rank = 1, .pid = 101, .exit = {.code = 3}, .wall_ms = 5}}};
    return fail().on(AllGone{}).from(EndJob{job_result});
  }

  // The check that fails at the next event after the node was broken.
  std::string notices(void (*broken)(Lifecycle&)) {
    return failed_check([&] {
      broken(life);
      life.on_event(Begin{}, now_ms);
    });
  }

  Lifecycle life{{.local_world_size = 2, .shares_details = true}};
  std::int64_t now_ms = 1000;
};

TEST_CASE("a node that nothing was done to is whole in every state") {
  const auto whole = [](Lifecycle&) {};
  CHECK(Node().notices(whole).empty());
  CHECK(Node().prepare().notices(whole).empty());
  CHECK(Node().run().notices(whole).empty());
  CHECK(Node().succeed().notices(whole).empty());
  CHECK(Node().fail().notices(whole).empty());
  CHECK(Node().gather().notices(whole).empty());
}

TEST_CASE("an answer that the node has not asked for in its state is noticed") {
  CHECK(failed_check([] { Node().run().on(AllGone{}); }).ends_with("AllGone in state 2"));
  CHECK(failed_check([] { Node().prepare().on(BackgroundFound{}); }).ends_with("BackgroundFound in state 1"));
  CHECK(failed_check([] { Node().fail().on(DetailsGathered{}); }).ends_with("DetailsGathered in state 4"));
  CHECK(failed_check([] { Node().fail().on(AllGone{}); }).empty());
}

TEST_CASE("a node that has a job result and does not end, or ends without one, is noticed") {
  const std::string job_result = "job_result_.has_value() == is_ending";
  CHECK(Node().run().notices(Breaker::judge) == job_result);
  CHECK(Node().gather().notices(Breaker::forget_job_result) == job_result);
  CHECK(Node().run().notices(Breaker::leave_nothing) == "!nothing_left_ || is_ending");
  CHECK(Node().gather().notices(Breaker::dismiss) ==
        "(state_ == State::kEnded) == (is_ending && nothing_left_ && dismissed_)");
  const std::string finishes = "finishes == (state_ == State::kEnded)";
  CHECK(Node().notices(Breaker::end_in_silence) == finishes);
  CHECK(Node().notices(Breaker::finish_too_early) == finishes);
}

TEST_CASE("a round whose state is not that of its workers is noticed") {
  CHECK(Node().prepare().notices(Breaker::be_ready) ==
        "state_ != State::kPreparing || preparation_.ready() == nullptr");
  const auto failed = [](Lifecycle& life) {
    Breaker::end_workers(life);
    Breaker::fail(life);
  };
  CHECK(Node().succeed().notices(failed) == "!runs_or_succeeded() || round_.failures().empty()");
  const std::string ended = "!runs_or_succeeded() || round_.all_have_ended() == (state_ == State::kSucceeded)";
  CHECK(Node().run().notices(Breaker::end_workers) == ended);
  CHECK(Node().succeed().notices(Breaker::begin_workers_again) == ended);
}

TEST_CASE("a node that stays although it was told to leave is noticed") {
  const std::string leaves = "!leaving_.has_come() || (state_ != State::kPreparing && !runs_or_succeeded())";
  CHECK(Node().prepare().notices(Breaker::be_told) == leaves);
  CHECK(Node().run().notices(Breaker::be_told) == leaves);
  CHECK(Node().succeed().notices(Breaker::be_told) == leaves);
  CHECK(Node().on(SignalReceived{SIGTERM}).notices(Breaker::detach) ==
        "!leaving_.has_come() || !away_ || state_ != State::kIdle || away_->votes_for_ms");
  CHECK(Node().notices(Breaker::be_asked) == "has_come() || !asked_ms_");
  CHECK(Node().on(SignalReceived{SIGTERM}).notices(Breaker::be_terminated) == "asked_ms_ || !terminated_");
}

TEST_CASE("a node that waits for what nothing ends is noticed") {
  CHECK(Node().run().notices(Breaker::linger) == "!lingers() || ends_processes()");
  CHECK(Node().fail().notices(Breaker::look_for_background) == "awaits_ != Awaits::kBackground || is_ending");
  CHECK(Node().fail().notices(Breaker::stop_timer) ==
        "!ends_processes() || awaits_ == Awaits::kBackground || timer_.is_set()");
  CHECK(Node().gather().notices(Breaker::stop_timer) == "!details_.are_being_gathered() || timer_.is_set()");
  CHECK(Node().prepare().notices(Breaker::await_logs) == "has_logs_ || !awaits_logs_");
  CHECK(Node().prepare().notices(Breaker::owe_a_store) == "awaited_stores_ >= 0");
}

TEST_CASE("details that are wanted without a job result, twice, or gathered too early or not at all, are noticed") {
  CHECK(Node().run().notices(Breaker::want_details) == "!details_.are_missing() || is_ending");
  const std::string time = "!details_.are_missing() || details_.are_being_gathered() == nothing_left_";
  CHECK(Node().run().notices(Breaker::gather_details) == time);
  CHECK(Node().gather().on(DetailsGathered{}).notices(Breaker::want_details) == time);
  CHECK(Node().gather().notices(Breaker::gather_again) == "!are_missing() || own_.empty()");
}

TEST_CASE("a worker that ends or starts twice, or that the round does not have, is noticed") {
  const std::string known = "local_rank >= 0 && static_cast<std::size_t>(local_rank) < workers_.size()";
  const auto check_of = [](Node& node, const Event& event) { return failed_check([&] { node.on(event); }); };
  Node node = Node().run();
  CHECK(check_of(node, WorkerStarted{0, 100}) == "begun.pid == 0 && event.pid != 0");
  CHECK(check_of(node, WorkerStarted{2, 102}) == known);
  CHECK(check_of(node, WorkerExited{-1, {}, 5}) == known);
  node.on(WorkerExited{0, {}, 5});
  CHECK(check_of(node, WorkerExited{0, {}, 6}) == "!ended.exited");
  CHECK(Node().fail().notices(Breaker::fail_twice) == "one_cause");
  CHECK(Node().run().notices(Breaker::fail) == "failures_.size() <= static_cast<std::size_t>(ended)");
  CHECK(Node().run().notices(Breaker::find_crash) == "!crash_ || cause() != nullptr");
}

TEST_CASE("a clock that goes back, a timer for the past and a kill ladder without a signal are noticed") {
  Node node = Node().fail();
  node.now_ms -= 1;
  CHECK(node.notices([](Lifecycle&) {}) == "idle_since_ms_ <= now_ms && since_ms_ <= now_ms");
  NodeWaits waits;
  waits.heard({}, 1000);
  CHECK(failed_check([&] { waits.follow(NodeWaits::For::kNothing, false, 999); }) ==
        "!news_ || (news_->since_ms <= now_ms && news_->because_ms <= now_ms)");
  NodeTimer timer;
  CHECK(failed_check([&] { timer.follow({StartTimer{-1}}, 0); }) == "started->delay_ms >= 0");
  KillLadder kill_ladder(0);
  Effects out;
  const std::string begins = "signal > 0 && patience_ms >= 0";
  CHECK(failed_check([&] { kill_ladder.begin(0, SignalWorkers::Cause::kOurs, 0, out); }) == begins);
  CHECK(failed_check([&] { kill_ladder.begin(SIGTERM, SignalWorkers::Cause::kOurs, -1, out); }) == begins);
}

}  // namespace

}  // namespace elastic::agent
