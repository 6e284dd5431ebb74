// A coordinator whose state is broken is noticed at its next event, and no message of an agent breaks it.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_test_support.h"
#include "rendezvous/coordinator/limits.h"
#include "src/base/check_test_support.h"
#include "src/base/limits.h"

namespace elastic::coordinator {

using namespace protocol;
using membership::MemberState;
using membership::Node;

// Breaks the invariants of a coordinator.
struct CoordinatorBreaker {
  using State = Coordinator::State;

  static void check(const Coordinator& job) { job.check_invariants(); }

  // Nodes, their sessions and their leases.
  static Node& node(Coordinator& job, AgentId agent = 1) { return job.roster_.at(agent); }
  static void end_session(Coordinator& job) { job.roster_.set_session(node(job), {}); }
  static void mistake_agent(Coordinator& job) { node(job).agent = 77; }
  static void lose_without_lease(Coordinator& job) {
    end_session(job);
    job.roster_.move(node(job), MemberState::kLost);
  }
  static void lose_with_another_lease(Coordinator& job) {
    lose_without_lease(job);
    job.loss_watch_.begin_lease(99, 5);
  }
  static void keep_lease(Coordinator& job) {
    lose_without_lease(job);
    job.loss_watch_.begin_lease(1, 5);
  }
  static void forget_when_lease_ends(Coordinator& job) {
    keep_lease(job);
    job.loss_watch_.by_time_.clear();
  }
  static void mistake_when_lease_ends(Coordinator& job) {
    keep_lease(job);
    job.loss_watch_.by_time_ = {{6, 1}};
  }
  static void look_for_nobody(Coordinator& job) { job.loss_watch_.silence_due_ms_.reset(); }
  static void let_a_node_wait(Coordinator& job) { wait(job, 1, 1); }
  static void let_wait_for_nothing(Coordinator& job) { job.claims_.waiting_.emplace_back().session = 1000; }
  static void let_too_many_wait(Coordinator& job) { wait(job, 1000, limits::kHeldNodes + 1); }
  static void wait(Coordinator& job, NodeId session, std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
      auto& waiting = job.claims_.waiting_.emplace_back();
      waiting.session = session;
      waiting.message.node_rank = 0;
    }
  }
  template <MemberState kMemberState>
  static void move(Coordinator& job) {
    job.roster_.move(node(job), kMemberState);
  }
  static void take_in_too_many(Coordinator& job) {
    for (std::size_t i = 0; i < limits::kNodesPerJob; ++i) {
      Node more;
      more.agent = 1000 + i;
      more.session = static_cast<NodeId>(1000 + i);
      job.roster_.add(std::move(more), MemberState::kReady);
    }
  }

  // Slots.
  static void take_slot_away(Coordinator& job) { job.round_.slots_.pop_back(); }
  static void give_slot_to_stranger(Coordinator& job) { job.round_.slots_[0].agent = 99; }
  static void give_slot_to_standby(Coordinator& job) { job.round_.slots_[0].agent = 3; }
  static void renumber_slot(Coordinator& job) { job.round_.slots_[0].slot = 9; }
  static void renumber_slot_and_node(Coordinator& job) {
    renumber_slot(job);
    job.roster_.at(job.round_.slots_[0].agent).slot = 9;
  }
  static void misplace(Coordinator& job) { node(job).place.node_rank = 1; }
  static void slot_before_round(Coordinator& job) { job.round_.slots_.push_back({1, 0, ""}); }
  static void stop_standby(Coordinator& job) { job.roster_.move(node(job, 3), MemberState::kStopping); }
  static void let_all_be_done(Coordinator& job) {
    for (const AgentId agent : {1U, 2U}) job.roster_.move(node(job, agent), MemberState::kDone);
  }

  // States, and what exists in them.
  static void forget_round(Coordinator& job) { job.round_.number_.reset(); }
  static void give_job_result(Coordinator& job) { job.ending_.job_result_.emplace(); }
  static void forget_job_result(Coordinator& job) { job.ending_.job_result_.reset(); }
  static void hear_before_job_result(Coordinator& job) { job.ending_.heard_.insert(1); }
  static void hear_of_stranger(Coordinator& job) { job.ending_.heard_.insert(99); }
  static void rebuild(Coordinator& job) { job.recovery_.round_.emplace(); }
  static void forget_recovery(Coordinator& job) { job.recovery_.round_.reset(); }
  static void stop_recovery(Coordinator& job) { job.recovery_.stop(); }
  static void forget_store(Coordinator& job) { job.round_.store_.reset(); }
  static void run_already(Coordinator& job) {
    job.round_.store_.emplace();
    job.round_.has_run_ = true;
  }
  static void end_job(Coordinator& job) { job.round_.stopping_.job_ends = true; }
  static void have_reason_to_stop(Coordinator& job) { job.round_.stopping_.other = "a reason"; }
  static void have_lost(Coordinator& job) { job.round_.stopping_.lost.emplace_back(); }
  static void fall_below_first_term(Coordinator& job) { job.config_.term = job.term() + 1; }
  static void end_without_job_result(Coordinator& job) { job.state_ = State::kEnded; }
  static void miss_too_many(Coordinator& job) { job.news_.gone_.resize(9); }
  static void tell_more_than_came(Coordinator& job) { job.news_.told_arrivals_ = job.roster_.arrivals() + 1; }

  // The check.
  static void pass_too_many_phases(Coordinator& job) { job.check_.phase_ = job.check_.phases_ + 1; }
  static void time_a_phase(Coordinator& job) { job.check_.phase_ms_.push_back(1); }
  static void keep_no_results(Coordinator& job) { job.check_.results_.clear(); }
  static void lose_a_result(Coordinator& job) { job.check_.results_.back().pop_back(); }
  static void count_answer(Coordinator& job) { ++job.check_.answers_; }
  static void count_all_answers(Coordinator& job) {
    job.check_.answers_ = job.check_.has_answered_.size();
    job.check_.has_answered_.assign(job.check_.answers_, true);
  }
  static void check_another_node(Coordinator& job) {
    job.check_.has_answered_.push_back(false);
    job.check_.results_.back().emplace_back();
  }
  static void evict_too_many(Coordinator& job) {
    for (std::size_t i = 0; i <= limits::kNodesPerJob; ++i)
      job.check_.evicted_.emplace("host" + std::to_string(i), Eviction::kUnhealthy);
  }
};

namespace {

using namespace testing;
using Breaker = CoordinatorBreaker;

class OnePhase : public health::CheckPlan {
 public:
  int phases(const std::vector<health::CheckNode>&, const health::CheckRules&) const override { return 1; }
  std::vector<std::string> orders(std::uint32_t, const std::vector<health::CheckNode>& nodes,
                                  const std::vector<health::CheckResults>&, const health::CheckRules&) const override {
    return std::vector<std::string>(nodes.size());
  }
  std::vector<Unhealthy> unhealthy(const std::vector<health::CheckNode>&,
                                   const std::vector<health::CheckResults>&) const override {
    return {};
  }
};

// A job of two nodes and a standby, in this state.
struct In : Job {
  explicit In(State state) : Job(job_terms(2, 2, 1)) {
    join(1);
    if (state == State::kForming) return;
    if (state == State::kRecovery) {
      rebuild();
      return;
    }
    join(2);
    join(3);
    if (state == State::kPreparing) return;
    open_store();
    if (state == State::kRunning) return;
    if (state == State::kStopping) {
      fail(1, failure(0, 1));
      return;
    }
    for (const NodeId node : {1U, 2U}) say(node, WorkersSucceeded{0});
  }
  void rebuild() {
    coordinator.on_event(Introduced{7, 3}, now_ms);
    NodeJoins back = joiner(4);
    back.facts = {.incarnation = 7,
                  .term = 3,
                  .round = 5,
                  .activity = AgentFacts::Activity::kRunning,
                  .place = {.node_rank = 0, .node_count = 2, .world_size = 2},
                  .membership = 11};
    say(4, back);
  }
};

// The check that fails once the coordinator is broken; empty if none does.
std::string broken(Coordinator& job, void (*breaks)(Coordinator&)) {
  breaks(job);
  return failed_check([&] { Breaker::check(job); });
}

std::string noticed(State state, void (*breaks)(Coordinator&)) {
  In job(state);
  REQUIRE(job.coordinator.state() == state);
  return broken(job.coordinator, breaks);
}

std::string noticed_in_check(void (*breaks)(Coordinator&)) {
  Job job(job_terms(2, 2), {}, std::make_unique<OnePhase>());
  job.check_rules.when = health::CheckRules::When::kAlways;
  job.join(1);
  job.join(2);
  REQUIRE(job.coordinator.is_checking());
  job.say(1, CheckDone{0, 0, "done"});
  return broken(job.coordinator, breaks);
}

TEST_CASE("in every state a coordinator has nothing to object to") {
  for (const State state :
       {State::kForming, State::kRecovery, State::kPreparing, State::kRunning, State::kStopping, State::kEnding}) {
    CHECK(noticed(state, [](Coordinator&) {}).empty());
  }
  CHECK(noticed_in_check([](Coordinator&) {}).empty());
}

TEST_CASE("a node without a session or a lease, or with those of another, is noticed") {
  CHECK(noticed(State::kRunning, Breaker::mistake_agent) == "node.agent == agent");
  CHECK(noticed(State::kRunning, Breaker::end_session) == "node.session.has_value() == !is_lost");
  CHECK(noticed(State::kRunning, Breaker::lose_without_lease) == "leases_.size() == roster.count(MemberState::kLost)");
  CHECK(noticed(State::kRunning, Breaker::lose_with_another_lease) == "leases_.contains(agent) == is_lost");
  CHECK(noticed(State::kRunning, Breaker::forget_when_lease_ends) == "by_time_.size() == leases_.size()");
  CHECK(noticed(State::kRunning, Breaker::mistake_when_lease_ends) == "by_time_.contains({lease.until_ms, node})");
  CHECK(noticed(State::kRunning, Breaker::look_for_nobody) == "is_lost || node.hosts_coordinator || silence_due_ms_");
  CHECK(noticed(State::kRunning, Breaker::keep_lease) ==
        "roster_.count(MemberState::kStopping) == 0 && roster_.count(MemberState::kLost) == 0");
  CHECK(noticed(State::kEnding, Breaker::keep_lease) == "roster_.count(MemberState::kLost) == 0");
  CHECK(noticed(State::kForming, Breaker::let_a_node_wait) == "roster.of_session(waiting.session) == nullptr");
  CHECK(noticed(State::kForming, Breaker::let_wait_for_nothing) == "waiting.message.node_rank");
  CHECK(noticed(State::kForming, Breaker::let_too_many_wait) == "waiting_.size() <= limits::kHeldNodes");
  CHECK(noticed(State::kForming, Breaker::take_in_too_many) == "is_over || roster_.size() <= limits::kNodesPerJob");
}

TEST_CASE("a round whose rank slots are not those of its members is noticed") {
  CHECK(noticed(State::kPreparing, Breaker::take_slot_away) == "roster.count(MemberState::kMember) == slots.size()");
  CHECK(noticed(State::kPreparing, Breaker::give_slot_to_stranger) == "found != nodes_.end()");
  CHECK(noticed(State::kPreparing, Breaker::give_slot_to_standby) == "node.member_state() == MemberState::kMember");
  CHECK(noticed(State::kPreparing, Breaker::renumber_slot) == "node.slot == slots[rank].slot");
  CHECK(noticed(State::kPreparing, Breaker::renumber_slot_and_node) ==
        "rank == 0 || slots[rank - 1].slot < slots[rank].slot");
  CHECK(noticed(State::kPreparing, Breaker::misplace) == "node.place.node_rank == static_cast<int>(rank)");
  CHECK(noticed(State::kRunning, Breaker::give_slot_to_stranger) ==
        "roster_.count(MemberState::kMember) == running(roster_, round_.slots())");
  CHECK(noticed(State::kForming, Breaker::slot_before_round) ==
        "round_.has_formed() || (round_.slots().empty() && !recovery_.has_begun())");
}

TEST_CASE("a node whose member state is not of the job's state is noticed") {
  CHECK(noticed(State::kForming, Breaker::move<MemberState::kMember>) == "in_round(roster_) == 0");
  CHECK(noticed(State::kForming, Breaker::move<MemberState::kStopping>) ==
        "round_.has_formed() || roster_.count(MemberState::kReady) == roster_.size()");
  CHECK(noticed(State::kPreparing, Breaker::move<MemberState::kReady>) ==
        "roster.count(MemberState::kMember) == slots.size()");
  CHECK(noticed(State::kRunning, Breaker::move<MemberState::kStopping>) ==
        "roster_.count(MemberState::kStopping) == 0 && roster_.count(MemberState::kLost) == 0");
  CHECK(noticed(State::kPreparing, Breaker::stop_standby) ==
        "roster.count(MemberState::kMember) + roster.count(MemberState::kReady) == roster.size()");
  CHECK(noticed(State::kRunning, Breaker::let_all_be_done) == "roster_.count(MemberState::kMember) > 0");
  CHECK(noticed(State::kStopping, Breaker::move<MemberState::kDone>) ==
        "in_round(roster_) == 0 && stopping(roster_) > 0");
}

TEST_CASE("a coordinator that has what is not of its state, or lacks what is, is noticed") {
  CHECK(noticed(State::kRunning, Breaker::forget_round) == "round_.has_formed() || !is_in_round()");
  CHECK(noticed(State::kRunning, Breaker::give_job_result) ==
        "ending_.job_result() ? is_over : state_ != State::kEnding");
  CHECK(noticed(State::kEnding, Breaker::forget_job_result) ==
        "ending_.job_result() ? is_over : state_ != State::kEnding");
  CHECK(noticed(State::kRunning, Breaker::hear_before_job_result) == "job_result_ || heard_.empty()");
  CHECK(noticed(State::kEnding, Breaker::hear_of_stranger) == "roster.nodes().contains(node)");
  const std::string of_recovery =
      "recovery_.has_begun() ? is_over || state_ == State::kRecovery : state_ != State::kRecovery";
  CHECK(noticed(State::kRunning, Breaker::rebuild) == of_recovery);
  CHECK(noticed(State::kRecovery, Breaker::forget_recovery) == of_recovery);
  CHECK(noticed(State::kRecovery, Breaker::stop_recovery) == "!recovery_.stops() || in_round(roster_) == 0");
  CHECK(noticed(State::kRunning, Breaker::forget_store) == "!round_.has_run() || round_.store()");
  CHECK(noticed(State::kPreparing, Breaker::run_already) == "!is_stopped && !round_.has_run()");
  for (const auto breaks : {Breaker::end_job, Breaker::have_reason_to_stop, Breaker::have_lost}) {
    CHECK(noticed(State::kPreparing, breaks) == "!is_stopped && !round_.has_run()");
    CHECK(noticed(State::kRunning, breaks) == "!is_stopped");
  }
  CHECK(noticed(State::kRunning, Breaker::fall_below_first_term) == "term() >= config_.term");
  CHECK(noticed(State::kForming, Breaker::end_without_job_result) ==
        "ending_.job_result() || round_.has_formed() || settings_.counts_votes() || roster_.size() == 0");
  CHECK(noticed(State::kRunning, Breaker::miss_too_many) == "gone_.size() <= kGoneKept");
  CHECK(noticed(State::kRunning, Breaker::tell_more_than_came) == "told_arrivals_ <= arrivals");
}

TEST_CASE("a check beyond its phases, and what is counted and not there, are noticed") {
  CHECK(noticed_in_check(Breaker::pass_too_many_phases) == "phase_ <= phases_");
  CHECK(noticed_in_check(Breaker::time_a_phase) == "phase_ms_.size() == phase_");
  CHECK(noticed_in_check(Breaker::keep_no_results) == "results_.size() == std::min(phase_ + 1, phases_)");
  CHECK(noticed_in_check(Breaker::lose_a_result) == "results_.back().size() == nodes()");
  CHECK(noticed_in_check(Breaker::check_another_node) == "!is_checking() || check_.nodes() == round_.slots().size()");
  CHECK(noticed_in_check(Breaker::evict_too_many) == "evicted_.size() <= limits::kNodesPerJob");
  for (const auto breaks : {Breaker::count_answer, Breaker::count_all_answers}) {
    CHECK(noticed_in_check(breaks) == "answers_ == answered && answers_ < nodes()");
  }
}

TEST_CASE("a coordinator checks itself after an event that may change something") {
  In job(State::kRunning);
  Breaker::have_lost(job.coordinator);
  job.on(KeepAliveReceived{1});
  CHECK(failed_check([&] { job.on(TimePassed{}); }) == "!is_stopped");
}

// No elastic-run does this, but a node with the secret of one job must not be able to end the coordinator of all.
TEST_CASE("a node that says it has succeeded before it may run, and leaves, changes nothing") {
  Job job(job_terms(2, 2), {}, std::make_unique<OnePhase>());
  job.check_rules.when = health::CheckRules::When::kAlways;
  job.join(1);
  job.join(2);
  job.say(2, CheckDone{0, 0, "done"});
  job.say(2, WorkersSucceeded{0});
  job.say(2, NodeLeaves{0});
  CHECK(job.coordinator.roster().size() == 2);
  job.say(1, CheckDone{0, 0, "done"});
  CHECK(job.open_store().all<RunWorkers>().size() == 2);
}

TEST_CASE("a session that waits for a rank joins once, whatever it says") {
  Job job(job_terms(1, 3));
  NodeJoins first = job.joiner(1);
  first.node_rank = 0;
  job.say(1, first);
  NodeJoins claimant = job.joiner(2);
  claimant.node_rank = 0;
  CHECK(job.say(2, claimant).all<AreYouThere>().size() == 1);
  CHECK(job.say(2, job.joiner(3)).silent());
  CHECK(job.coordinator.roster().size() == 1);
}

}  // namespace
}  // namespace elastic::coordinator
