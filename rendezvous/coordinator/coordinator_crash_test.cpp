// Jobs whose attempts fail with the same crash.
#include <doctest/doctest.h>

#include "rendezvous/coordinator/coordinator_test_support.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::coordinator::testing;
using namespace elastic::protocol;

namespace {

const Crash kCrash = {Crash::Kind::kImport, 0x77};

// A job of two nodes with one worker each, whose round runs.
struct Pair : Job {
  explicit Pair(int max_restarts, JobRules with_rules = {}) : Job(job_terms(2, 2, max_restarts), with_rules) {
    run({1, 2});
  }

  // The worker of this session's node fails first, with the crash `of`, and the round ends.
  Answer crash(NodeId first, std::optional<Crash> of, std::optional<Crash> of_other = {}) {
    const RoundNumber round = *coordinator.round();
    const int rank = static_cast<int>(first) - 1;
    const NodeId other = 3 - first;
    fail(first, failure(rank, 5));
    say(other, NodeStopped{round, {failure(1 - rank, 4, true)}, of_other});
    return say(first, NodeStopped{round, {failure(rank, 5)}, of});
  }
  // The same, with a restart after it.
  void restart(NodeId first, std::optional<Crash> of) {
    const Answer answer = crash(first, of);
    REQUIRE(answer.all<PrepareRound>().size() == 2);
    open_store();
  }
};

TEST_CASE("a job whose two attempts failed of the same crash ends as deterministic, on whatever nodes they did") {
  for (const NodeId second : {1U, 2U}) {
    Pair job(3);
    job.restart(1, kCrash);
    const Answer answer = job.crash(second, kCrash);
    CHECK(answer.all<PrepareRound>().empty());
    for (const NodeId node : {1U, 2U}) {
      const JobResult job_result = answer.to<EndJob>(node).job_result;
      CHECK(job_result.outcome == JobResult::Outcome::kFailed);
      CHECK(job_result.is_deterministic);
      CHECK(job_result.restarts_used == 1);
      CHECK(job_result.reason ==
            "the failure is deterministic: attempts 0 and 1 failed with the same import error, so the "
            "job is not restarted (--crash-loop=restart restarts it anyway)");
      CHECK(job_result.failures.front().node_rank == static_cast<int>(second) - 1);
    }
  }
}

TEST_CASE("only the crash of the worker that failed first counts") {
  Pair job(3);
  job.restart(1, kCrash);
  CHECK(job.crash(1, Crash{Crash::Kind::kImport, 0x78}, kCrash).all<PrepareRound>().size() == 2);
}

TEST_CASE("another failure in between begins anew, and so does one of which nobody has told what it was") {
  for (const std::optional<Crash>& other :
       {std::optional<Crash>(), std::optional<Crash>({Crash::Kind::kSyntax, 0x77})}) {
    Pair job(5);
    job.restart(1, kCrash);
    job.restart(1, other);
    job.restart(2, kCrash);
    CHECK(job.crash(1, kCrash).to<EndJob>(1).job_result.is_deterministic);
  }
}

TEST_CASE("with crash-loop restart every restart is spent, and the job ends like any other that failed") {
  Pair job(2, {.crash_loop = JobRules::CrashLoop::kRestart});
  job.restart(1, kCrash);
  job.restart(1, kCrash);
  const JobResult job_result = job.crash(1, kCrash).to<EndJob>(1).job_result;
  CHECK(!job_result.is_deterministic);
  CHECK(job_result.reason.empty());
  CHECK(job_result.restarts_used == 2);
}

TEST_CASE("one attempt alone is never deterministic, and the last two are though no restart is left") {
  Pair once(0);
  CHECK(!once.crash(1, kCrash).to<EndJob>(1).job_result.is_deterministic);
  Pair twice(1);
  twice.restart(1, kCrash);
  CHECK(twice.crash(1, kCrash).to<EndJob>(1).job_result.is_deterministic);
}

TEST_CASE(
    "a node that is lost while workers run begins the count of crashes anew, and one that is lost before they do does "
    "not") {
  for (const bool runs : {true, false}) {
    Pair job(5);
    const Answer answer = job.crash(1, kCrash);
    REQUIRE(answer.all<PrepareRound>().size() == 2);
    if (runs) job.open_store();
    job.on(SessionEnded{2, "its connection was reset"});
    job.stop(1);
    job.join(3);
    job.pass_with({1, 3}, 10'000);
    REQUIRE(*job.coordinator.round() == 2);
    job.open_store();
    job.fail(1, failure(0, 5));
    job.stop(3);
    const Answer again = job.say(1, NodeStopped{2, {failure(0, 5)}, kCrash});
    CHECK(again.all<EndJob>().empty() == runs);
  }
}

}  // namespace
