#pragma once

#include "src/status/snapshot.h"

// A snapshot with a value in every member, for tests.
namespace elastic::status::testing {

inline Snapshot full_snapshot() {
  Job job{.id = "job",
          .phase = JobPhase::kRunning,
          .phase_for_ms = 4000,
          .round = 3,
          .world_size = 6,
          .min_nodes = 2,
          .max_nodes = 4,
          .restarts_charged = 2,
          .max_restarts = 3,
          .node_losses = 1,
          .again_because = "node 2 was lost"};
  job.nodes = {0, 0, 3, 0, 1, 0, 1, 0};
  job.rounds = {1, 2, 1, 0, 0, 0};
  job.restarts = {0, 2, 1, 0, 0, 0};
  job.lost_work_ms = {0, 30'000, 12'345, 0, 0, 0};
  job.phase_ms = {5000, 0, 1000, 500, 90'500, 3000};
  job.failures = {{.round = 2,
                   .cause = RoundCause::kNodeLost,
                   .node = "node2",
                   .node_rank = 2,
                   .text = "node 2 (node2) was lost: its connection was reset",
                   .age_ms = 4500},
                  {.round = 1,
                   .cause = RoundCause::kWorkerFailure,
                   .node = "node1",
                   .node_rank = 1,
                   .rank = 5,
                   .text = "rank 5 exited with code 1",
                   .age_ms = 60'000}};
  job.checks = 1;
  job.check = Check{.round = 0, .fit = 3, .slow = 1, .seconds = 1.25, .slowest_busbw_bytes = 1.5e9};
  job.newest = Progress{
      .rank = 5, .step = 118, .millisteps_per_second = 2345, .age_ms = 4000, .source = "megatron", .phase = "train"};
  job.oldest = Progress{.rank = 1, .age_ms = 40'000, .source = "tqdm", .phase = "eval"};
  job.speakers = 2;
  job.hang = {.state = HangState::kJudged,
              .silent_ms = 250'000,
              .limit_ms = 60'000,
              .limit_from = "learned",
              .phase = "train",
              .told = 3,
              .recovered = 2,
              .withdrawn = 1,
              .last = Hang{.round = 3,
                           .rule = 7,
                           .verdict = "behind",
                           .fault = "soft",
                           .cause = "rank 5 (node node3) is not in the collective that others wait in",
                           .ranks = {5},
                           .nodes = {"node3"},
                           .silent_ms = 65'000,
                           .age_ms = 185'000}};
  job.members = {
      {.name = "node0", .place = MemberPlace::kInRound, .node_rank = 0, .workers = 2, .hosts_coordinator = true},
      {.name = "node1",
       .place = MemberPlace::kInRound,
       .node_rank = 1,
       .workers = 2,
       .silent_ms = 800,
       .peer_address = "10.0.0.1:40123"},
      {.name = "node3", .place = MemberPlace::kInRound, .node_rank = 2, .workers = 2},
      {.name = "node4", .place = MemberPlace::kStandby, .workers = 2}};
  Node node{.job = "job",
            .name = "node0",
            .activity = NodeActivity::kRunning,
            .round = 3,
            .node_count = 3,
            .world_size = 6,
            .restart_count = 2,
            .max_restarts = 3,
            .workers = {{0, 0, 4711, true, job.newest}, {1, 1, 4712, true}},
            .start = WorkerStart::kWarm,
            .warm = {.state = Warmth::kPreparing, .waiting = 1, .why = "1 of 2 workers wait"},
            .workers_started = 8,
            .workers_failed = 1,
            .warm_started = 4,
            .spared_cpu_ms = 9000,
            .hosts_coordinator = true,
            .endpoint = "node0:29400"};
  node.progress = job.newest;
  node.store = {.operations = {{"get", 12}, {"set", 7}}, .connections = 6, .keys = 4, .bytes = 900};
  return {.version = "1.2.3",
          .uptime_ms = 100'000,
          .node = node,
          .coordinator = Coordinator{.jobs = {job},
                                     .connections = 4,
                                     .ended = {1, 1, 0},
                                     .last_ended = {{"before", Outcome::kFailed, "rank 0 exited with code 1"}}},
          .http_answers = {{200, 5}}};
}

}  // namespace elastic::status::testing
