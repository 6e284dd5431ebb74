#include "rendezvous/coordinator/job_statistics.h"

#include <doctest/doctest.h>

#include "src/status/limits.h"

using namespace elastic;
using elastic::coordinator::JobStatistics;

namespace {

status::Job told(const JobStatistics& statistics, std::int64_t now_ms) {
  status::Job job;
  statistics.fill_status(job, now_ms);
  return job;
}
std::int64_t of(const auto& values, auto name) { return values[static_cast<std::size_t>(name)]; }

}  // namespace

TEST_CASE("each moment belongs to one phase, and the present one counts") {
  JobStatistics statistics(1000);
  statistics.enter(JobPhase::kPreparing, 1500);
  statistics.enter(JobPhase::kRunning, 1600);
  statistics.enter(JobPhase::kRunning, 1700);
  const status::Job job = told(statistics, 2600);
  CHECK(of(job.phase_ms, JobPhase::kWaiting) == 500);
  CHECK(of(job.phase_ms, JobPhase::kPreparing) == 100);
  CHECK(of(job.phase_ms, JobPhase::kRunning) == 1000);
  CHECK(job.phase == JobPhase::kRunning);
  CHECK(job.phase_for_ms == 1000);
  std::int64_t all_ms = 0;
  for (const std::int64_t ms : job.phase_ms) all_ms += ms;
  CHECK(all_ms == 1600);
}

TEST_CASE("work is lost once, and only what the last round has run") {
  JobStatistics statistics(0);
  statistics.round_began(RoundCause::kFirst, false);
  statistics.enter(JobPhase::kRunning, 100);
  statistics.enter(JobPhase::kStopping, 700);
  statistics.work_lost(RoundCause::kWorkerFailure, 900);
  statistics.work_lost(RoundCause::kNodeLost, 950);
  CHECK(of(told(statistics, 1000).lost_work_ms, RoundCause::kWorkerFailure) == 600);
  CHECK(of(told(statistics, 1000).lost_work_ms, RoundCause::kNodeLost) == 0);
  statistics.round_began(RoundCause::kWorkerFailure, true);
  statistics.work_lost(RoundCause::kNodeLost, 2000);  // the round never ran
  CHECK(of(told(statistics, 2000).lost_work_ms, RoundCause::kNodeLost) == 0);
}

TEST_CASE("a round that fails and is over in the same moment loses what it ran") {
  JobStatistics statistics(0);
  statistics.enter(JobPhase::kRunning, 100);
  statistics.work_lost(RoundCause::kNodeLost, 400);
  CHECK(of(told(statistics, 400).lost_work_ms, RoundCause::kNodeLost) == 300);
  CHECK(of(told(statistics, 400).phase_ms, JobPhase::kRunning) == 300);
}

TEST_CASE("a round is a restart only where workers had run before it") {
  JobStatistics statistics(0);
  statistics.round_began(RoundCause::kFirst, false);
  statistics.round_began(RoundCause::kCheck, false);
  statistics.round_began(RoundCause::kWorkerFailure, true);
  const status::Job job = told(statistics, 0);
  CHECK(of(job.rounds, RoundCause::kFirst) == 1);
  CHECK(of(job.rounds, RoundCause::kCheck) == 1);
  CHECK(of(job.rounds, RoundCause::kWorkerFailure) == 1);
  CHECK(of(job.restarts, RoundCause::kCheck) == 0);
  CHECK(of(job.restarts, RoundCause::kWorkerFailure) == 1);
}

TEST_CASE("the last failures are remembered, the newest first, and no more than so many") {
  JobStatistics statistics(0);
  for (std::int64_t i = 0; i < 100; ++i) statistics.failed({.round = i, .text = "x"}, i * 10);
  const status::Job job = told(statistics, 1000);
  REQUIRE(job.failures.size() == limits::kStatusFailures);
  CHECK(job.failures[0].round == 99);
  CHECK(job.failures[0].age_ms == 10);
}
