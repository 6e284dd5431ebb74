// The state that a coordinator that takes a job over gets from the one before it, through the agents of the round.
#include <doctest/doctest.h>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_test_support.h"
#include "rendezvous/coordinator/transferred_state.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::coordinator::testing;
using namespace elastic::protocol;

namespace {

constexpr Incarnation kJob = 77;
constexpr std::int64_t kUnixMs = 1'790'000'000'000;

// A coordinator that is started when its clock shows 500 ms and a wall clock kUnixMs, and the nodes of a round that the
// previous one formed. The session and agent number of a node is its rank + 1.
struct After : Job {
  explicit After(JobTerms with_terms, int nodes_of_round)
      : Job(with_terms, {}, {.incarnation = 1, .now_ms = 500, .made_ms = 500, .birth_ms = kUnixMs}),
        size(nodes_of_round) {}

  NodeJoins report(int rank, Activity activity = Activity::kRunning) const {
    NodeJoins joins = joiner(static_cast<AgentId>(rank) + 1);
    const PrepareRound its{.round = 5,
                           .restart_count = 2,
                           .place = {rank, size, rank, size, rank, size},
                           .losses = 1,
                           .membership = 4711,
                           .transferred = {number, bytes}};
    joins.facts = facts_of(its, kJob, activity);
    return joins;
  }
  Answer back(int rank, Activity activity = Activity::kRunning) {
    on(Introduced{kJob, 1});
    return say(static_cast<NodeId>(rank) + 1, report(rank, activity));
  }
  // All nodes of the round come back, and bring this state.
  void back_with(const TransferredState& state) {
    bytes = encode(state);
    for (int rank = 0; rank < size; ++rank) back(rank);
    REQUIRE(coordinator.state() == State::kRunning);
  }
  // A worker of the first node fails, and all nodes of the round stop.
  Answer fail_and_stop(std::optional<Crash> crash = {}) {
    fail(1, failure(0, 5));
    Answer last = say(1, NodeStopped{5, {failure(0, 5)}, crash});
    for (int rank = 1; rank < size; ++rank) last = stop(static_cast<NodeId>(rank) + 1);
    return last;
  }
  TransferredState handed_on(const Answer& answer) const {
    const auto state = decode(answer.to<PrepareRound>(1).transferred.state);
    REQUIRE(state.has_value());
    return *state;
  }

  int size;
  std::uint64_t number = 1;
  std::string bytes;
};

// The reason for which a fresh node on this host is turned away; empty if it is let in.
std::optional<Rejected> refused(Job& job, AgentId agent, const std::string& host) {
  NodeJoins joins = job.joiner(agent);
  joins.address = host;
  const auto rejected = job.say(static_cast<NodeId>(agent), joins).all<Rejected>();
  if (rejected.empty()) return {};
  return rejected.front().second;
}

}  // namespace

TEST_CASE("the rules of the first node hold after a recovery, whoever reports first") {
  After job(job_terms(1, 4, 3), 2);
  TransferredState state;
  state.rules.scale_up = JobRules::ScaleUp::kNever;
  state.first_size = 3;
  job.back_with(state);  // each node has joined with scale_up=after=1
  job.join(8);
  job.join(9);
  CHECK(job.pass_with({1, 2, 8, 9}, 3000).silent());
  CHECK(job.fail_and_stop().to<PrepareRound>(1).place.node_count == 3);  // as many as the first round had
}

TEST_CASE("without transferred state the size of the present round is the first one") {
  After job(job_terms(1, 4, 3), 2);
  job.rules.scale_up = JobRules::ScaleUp::kNever;
  for (int rank = 0; rank < 2; ++rank) job.back(rank);
  job.join(8);
  CHECK(job.fail_and_stop().to<PrepareRound>(1).place.node_count == 2);
}

TEST_CASE("a host that was quarantined is quarantined for the rest of its time") {
  After job(job_terms(1, 4, 3), 2);
  TransferredState state;
  state.hosts = {{"bad", 0, kUnixMs - 100'000, 300'000, kUnixMs + 200'000}};
  job.back_with(state);
  const auto rejected = refused(job, 8, "bad");
  REQUIRE(rejected.has_value());
  CHECK(rejected->why == Rejected::Why::kQuarantined);
  CHECK(rejected->retry_ms == 200'000);
  CHECK(!refused(job, 9, "good"));
  job.pass_with({1, 2, 9}, 200'000);
  CHECK(!refused(job, 10, "bad"));
}

TEST_CASE("a host that the check has evicted stays evicted") {
  After job(job_terms(1, 4, 3), 2);
  TransferredState state;
  state.evicted = {{"bad"}};
  job.back_with(state);
  const auto rejected = refused(job, 8, "bad");
  REQUIRE(rejected.has_value());
  CHECK(rejected->why == Rejected::Why::kEvicted);
}

TEST_CASE(
    "newcomers of quarantined and evicted hosts that came before the first node of the round are turned away then") {
  After job(job_terms(1, 4, 3), 2);
  TransferredState state;
  state.hosts = {{"lost", 0, kUnixMs, 300'000, kUnixMs + 300'000}};
  state.evicted = {{"unfit"}};
  job.bytes = encode(state);
  CHECK(!refused(job, 8, "lost"));
  CHECK(!refused(job, 9, "unfit"));
  CHECK(!refused(job, 10, "good"));
  const Answer answer = job.back(0);
  CHECK(answer.to<Rejected>(8).why == Rejected::Why::kQuarantined);
  CHECK(answer.to<Rejected>(9).why == Rejected::Why::kEvicted);
  CHECK(answer.all<Rejected>().size() == 2);
}

TEST_CASE("a crash that comes again after a recovery is deterministic") {
  const Crash crash{Crash::Kind::kImport, 0xC8A54};
  for (const bool is_same : {true, false}) {
    After job(job_terms(2, 2, 5), 2);
    TransferredState state;
    state.crash = CrashLoop::Attempt{1, is_same ? crash : Crash{Crash::Kind::kImport, 1}};
    job.back_with(state);
    const Answer answer = job.fail_and_stop(crash);
    if (!is_same) {
      CHECK(answer.to<PrepareRound>(1).restart_count == 3);
      continue;
    }
    const JobResult job_result = answer.to<EndJob>(1).job_result;
    CHECK(job_result.is_deterministic);
    CHECK(job_result.reason.find("attempts 1 and 2 failed with the same import error") != std::string::npos);
  }
}

TEST_CASE("transferred state is passed on, with a greater number, and with what this coordinator does not know") {
  After job(job_terms(1, 4, 5), 2);
  TransferredState state;
  state.rules.join_timeout_ms = 44'000;
  state.first_size = 3;
  state.losses = 7;
  state.hosts = {{"bad", 0, kUnixMs - 100'000, 300'000, kUnixMs + 200'000}};
  state.evicted = {{"unfit"}};
  state.more = "later";
  job.back_with(state);
  const Answer next = job.fail_and_stop();
  CHECK(next.to<PrepareRound>(1).transferred.number > job.number);
  CHECK(next.to<PrepareRound>(1).transferred == next.to<PrepareRound>(2).transferred);
  state.restarts_used = 3;
  CHECK(job.handed_on(next) == state);
}

TEST_CASE("of the states that the nodes of a round bring the newest holds") {
  for (const bool newest_first : {true, false}) {
    After job(job_terms(2, 2, 5), 2);
    for (const bool newest : {newest_first, !newest_first}) {
      TransferredState state;
      state.first_size = 2;
      state.more = newest ? "newest" : "older";
      job.number = newest ? 2 : 1;
      job.bytes = encode(state);
      job.back(newest == newest_first ? 0 : 1);
    }
    CHECK(job.handed_on(job.fail_and_stop()).more == "newest");
  }
}

TEST_CASE("a coordinator goes on without what it cannot read, and says so") {
  After job(job_terms(2, 2, 5), 2);
  job.bytes = "\xff\xff";
  bool is_said = false;
  for (const Effect& effect : job.back(0).effects) {
    const auto* note = std::get_if<Note>(&effect);
    is_said = is_said || (note != nullptr && note->text.find("cannot be read") != std::string::npos);
  }
  CHECK(is_said);
  job.back(1);
  CHECK(job.fail_and_stop().to<PrepareRound>(1).restart_count == 3);
}

TEST_CASE("a host that one coordinator quarantines is quarantined by the next, by its own clock") {
  JobRules rules;
  rules.node_losses = 1;
  Job first(job_terms(1, 3), rules, {.now_ms = -10'000, .made_ms = 0, .birth_ms = kUnixMs});
  first.now_ms = 0;
  first.run({1, 2, 3});
  first.on(SessionEnded{2, "reset"});
  first.stop(1);
  first.stop(3);
  const Answer next = first.on(NodeEmptied{2, first.coordinator.incarnation(), 0});

  Job second(job_terms(1, 3), {}, {.incarnation = 9, .now_ms = 500, .made_ms = 500, .birth_ms = kUnixMs + 100'000});
  for (const NodeId node : {1U, 3U}) {
    NodeJoins joins = second.joiner(node);
    joins.facts = facts_of(next.to<PrepareRound>(node), first.coordinator.incarnation(), Activity::kRunning);
    second.on(Introduced{joins.facts.incarnation, joins.facts.term});
    second.say(node, joins);
  }
  REQUIRE(second.coordinator.state() == State::kRunning);
  const auto rejected = refused(second, 8, "node2");
  REQUIRE(rejected.has_value());
  CHECK(rejected->retry_ms == 200'000);
}
