#include <doctest/doctest.h>

#include "rendezvous/coordinator/coordinator_test_support.h"

using namespace elastic;
using namespace elastic::protocol;
using namespace elastic::coordinator;
using namespace elastic::coordinator::testing;

namespace {

status::Job status_of(const Job& job) { return job.coordinator.status(job.now_ms, 100); }
std::int64_t of(const auto& values, auto name) { return values[static_cast<std::size_t>(name)]; }

// A check of one phase that finds these ranks faulty.
class OnePhase : public health::CheckPlan {
 public:
  explicit OnePhase(std::vector<Unhealthy> unhealthy) : unhealthy_(std::move(unhealthy)) {}
  int phases(const std::vector<health::CheckNode>& nodes, const health::CheckRules&) const override {
    for (const health::CheckNode& node : nodes) {
      if (!node.passed) return 1;
    }
    return 0;
  }
  std::vector<std::string> orders(std::uint32_t, const std::vector<health::CheckNode>& nodes,
                                  const std::vector<health::CheckResults>&, const health::CheckRules&) const override {
    return std::vector<std::string>(nodes.size(), "look");
  }
  std::vector<Unhealthy> unhealthy(const std::vector<health::CheckNode>&,
                                   const std::vector<health::CheckResults>&) const override {
    return unhealthy_;
  }

 private:
  std::vector<Unhealthy> unhealthy_;
};

}  // namespace

TEST_CASE("the time of a job is split by what it does") {
  Job job(job_terms(2, 2, 1), {}, CoordinatorConfig{});
  job.join(1);
  job.pass_with({1}, 400);
  CHECK(status_of(job).phase == JobPhase::kWaiting);
  CHECK(of(status_of(job).nodes, MemberPlace::kWaiting) == 1);
  job.join(2);
  CHECK(status_of(job).phase == JobPhase::kPreparing);
  job.pass_with({1, 2}, 300);
  job.open_store();
  job.pass_with({1, 2}, 5000);
  const status::Job running = status_of(job);
  CHECK(running.phase == JobPhase::kRunning);
  CHECK(running.round == 0);
  CHECK(running.world_size == 2);
  CHECK(of(running.nodes, MemberPlace::kInRound) == 2);
  CHECK(of(running.phase_ms, JobPhase::kWaiting) == 400);
  CHECK(of(running.phase_ms, JobPhase::kPreparing) == 300);
  CHECK(of(running.phase_ms, JobPhase::kRunning) == 5000);
  job.fail(1, failure(0, 5));
  job.pass_with({1, 2}, 200);
  CHECK(status_of(job).phase == JobPhase::kStopping);
  CHECK(of(status_of(job).nodes, MemberPlace::kStopping) == 2);
  CHECK(of(status_of(job).phase_ms, JobPhase::kStopping) == 200);
}

TEST_CASE("a failed worker costs a restart and the work of its round, and is remembered") {
  Job job(job_terms(2, 2, 3));
  job.run({1, 2});
  job.pass_with({1, 2}, 7000);
  job.fail(2, failure(1, 5));
  job.stop(1);
  job.stop(2, {failure(1, 5)});
  const status::Job again = status_of(job);
  CHECK(of(again.rounds, RoundCause::kFirst) == 1);
  CHECK(of(again.rounds, RoundCause::kWorkerFailure) == 1);
  CHECK(of(again.restarts, RoundCause::kWorkerFailure) == 1);
  CHECK(of(again.restarts, RoundCause::kFirst) == 0);
  CHECK(of(again.lost_work_ms, RoundCause::kWorkerFailure) == 7000);
  CHECK(again.restarts_charged == 1);
  REQUIRE(again.failures.size() == 1);
  CHECK(again.failures[0].rank == 1);
  CHECK(again.failures[0].node == "node2");
  CHECK(again.failures[0].text.contains("exited with code 1"));
  CHECK(again.again_because == again.failures[0].text);
}

TEST_CASE("a lost node is a cause of its own, and the failures that come of it are not remembered") {
  Job job(job_terms(2, 3, 3));
  job.terms.max_nodes = 3;
  for (const NodeId session : {1U, 2U, 3U}) job.join(session);
  job.open_store();
  job.pass_with({1, 2, 3}, 2000);
  job.fail(1, failure(0, 5));
  job.on(SessionEnded{3, "its connection was reset"});
  CHECK(of(status_of(job).nodes, MemberPlace::kLost) == 1);
  job.stop(1, {failure(0, 5)});
  job.stop(2);
  job.pass_with({1, 2}, 20'000);
  const status::Job again = status_of(job);
  CHECK(of(again.restarts, RoundCause::kNodeLost) == 1);
  CHECK(of(again.lost_work_ms, RoundCause::kNodeLost) == 2000);
  CHECK(of(again.lost_work_ms, RoundCause::kWorkerFailure) == 0);
  CHECK(again.node_losses == 1);
  REQUIRE(again.failures.size() == 1);
  CHECK(again.failures[0].cause == RoundCause::kNodeLost);
  CHECK(again.failures[0].node == "node3");
}

TEST_CASE("a node that joins is a standby, and then a change of membership") {
  JobRules rules;
  rules.scale_up = JobRules::ScaleUp::kAfter;
  rules.scale_up_after_ms = 500;
  rules.last_call_ms = 0;
  Job job(job_terms(1, 2, 0), rules);
  job.run({1});
  job.pass_with({1}, 1000);
  job.join(2);
  CHECK(of(status_of(job).nodes, MemberPlace::kStandby) == 1);
  job.pass_with({1, 2}, 600);
  job.stop(1);
  const status::Job again = status_of(job);
  CHECK(of(again.restarts, RoundCause::kMembershipChange) == 1);
  CHECK(of(again.lost_work_ms, RoundCause::kMembershipChange) >= 1000);
  CHECK(again.failures.empty());
}

TEST_CASE("the check is a phase, and a round after it is no restart") {
  JobRules rules;
  rules.last_call_ms = 500;
  Job job(job_terms(1, 2), rules, {},
          std::make_unique<OnePhase>(std::vector<health::CheckPlan::Unhealthy>{{1, "its disk is gone"}}));
  job.check_rules.when = health::CheckRules::When::kFirst;
  job.join(1);
  job.join(2);
  job.pass_with({1, 2}, 100);
  REQUIRE(job.coordinator.is_checking());
  CHECK(status_of(job).phase == JobPhase::kChecking);
  CHECK(of(status_of(job).nodes, MemberPlace::kChecking) == 2);
  for (const NodeId session : {1U, 2U}) job.say(session, CheckDone{0, 0, "seen"});
  for (const NodeId session : {1U, 2U}) job.stop(session);
  job.pass_with({1}, 1000);
  const status::Job again = status_of(job);
  CHECK(of(again.rounds, RoundCause::kCheck) == 1);
  CHECK(of(again.restarts, RoundCause::kCheck) == 0);
  CHECK(of(again.nodes, MemberPlace::kUnhealthy) == 1);
  CHECK(of(again.lost_work_ms, RoundCause::kCheck) == 0);
}

TEST_CASE("a quarantined host is counted until it may come back") {
  JobRules rules;
  rules.node_losses = 1;
  rules.quarantine_ms = 60'000;
  rules.last_call_ms = 500;
  Job job(job_terms(1, 2, 0), rules);
  for (const NodeId session : {1U, 2U}) job.join(session);
  job.open_store();
  job.on(SessionEnded{2, "its connection was reset"});
  CHECK(of(status_of(job).nodes, MemberPlace::kQuarantined) == 1);
  job.stop(1);
  job.pass_with({1}, 61'000);
  CHECK(of(status_of(job).nodes, MemberPlace::kQuarantined) == 0);
}

TEST_CASE("nodes are named by their rank, and of many only so many") {
  Job job(job_terms(3, 3));
  job.run({5, 6, 7});
  const status::Job some = job.coordinator.status(job.now_ms, 2);
  CHECK(some.members.size() == 2);
  CHECK(some.members_left_out == 1);
  const status::Job all = status_of(job);
  REQUIRE(all.members.size() == 3);
  for (int rank = 0; rank < 3; ++rank) CHECK(all.members[static_cast<std::size_t>(rank)].node_rank == rank);
}

TEST_CASE(
    "a job's progress is that of the rank with the newest sign of it, and of the rank with the oldest, and ages") {
  Job job(job_terms(2, 2, 1), {}, CoordinatorConfig{});
  job.join(1);
  job.join(2);
  job.open_store();
  CHECK_FALSE(status_of(job).newest);
  const auto told = [](int rank, std::int64_t step, std::int64_t age_ms) {
    return ProgressOfRank{.rank = rank, .step = step, .age_ms = age_ms, .source = progress::Source::kMegatron};
  };
  job.say(1, NodeProgress{0, told(0, 10, 100), told(1, 9, 2000), 2});
  job.say(2, NodeProgress{0, told(2, 11, 50), told(2, 11, 50), 1});
  job.pass_with({1, 2}, 300);
  const status::Job running = status_of(job);
  REQUIRE(running.newest);
  CHECK(running.newest->rank == 2);
  CHECK(running.newest->step == 11);
  CHECK(running.newest->age_ms == 350);
  CHECK(running.newest->source == "megatron");
  CHECK(running.oldest->rank == 1);
  CHECK(running.oldest->age_ms == 2300);
  CHECK(running.speakers == 3);
  CHECK(running.members[0].progress->step == 10);
}

TEST_CASE("progress of another round than the one that runs is none of the job's") {
  Job job(job_terms(1, 1, 1), {}, CoordinatorConfig{});
  job.join(1);
  job.say(1, NodeProgress{.round = 0});  // its workers have not begun
  job.open_store();
  CHECK_FALSE(status_of(job).newest);
  job.say(1, NodeProgress{.round = 7});
  CHECK_FALSE(status_of(job).newest);
}

TEST_CASE("an age that no node can mean is borne") {
  Job job(job_terms(1, 1, 1), {}, CoordinatorConfig{});
  job.join(1);
  job.open_store();
  job.say(1, NodeProgress{.newest = {.age_ms = INT64_MAX}, .oldest = {.age_ms = INT64_MIN}});
  job.pass_with({1}, 1000);
  CHECK(status_of(job).newest->age_ms > 1000);
  CHECK(status_of(job).oldest->age_ms == 1000);
}
