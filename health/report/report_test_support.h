#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "health/report/health_report.h"

namespace elastic::health {

// The report of a check that has found one of each kind: among `nodes` (at least 8), node 3 is faulty, node 5 is slow
// in the exchange, the link between 6 and 7 is bad, and all nodes have a small /dev/shm.
inline HealthReport example_report(int nodes = 8) {
  HealthReport report{.job = "llama-70b",
                      .round = 2,
                      .wall_ms = 1'795'279'603'500,
                      .phase_ms = {412, 61.5, 70, 55.5},
                      .exchange_bytes = 4'194'304};
  std::vector<NodeFigures> figures;
  for (int rank = 0; rank < nodes; ++rank) {
    report.nodes.push_back({.rank = rank,
                            .name = "10.0." + std::to_string(rank / 250) + "." + std::to_string(1 + rank % 250),
                            .local_world_size = 8,
                            .compute_ms = 3.0 + 0.01 * (rank % 7),
                            .memory_gbps = 11.5 - 0.1 * (rank % 5),
                            .findings = {{Severity::kWarning, "/dev/shm is small: 64 MiB", "/dev/shm",
                                          "start the container with --shm-size=16g"}}});
    figures.push_back({.compute_ms = report.nodes.back().compute_ms});
  }
  report.nodes[3].findings.push_back(
      {Severity::kFatal, "the link of eth1 is down", "eth1", "look at its cable and at the switch"});

  std::vector<PairTest> tests;
  const auto run = [&](const std::vector<Group>& groups, int stage) {
    for (const Group& group : groups) {
      for (const auto& [one, other] : tests_of(group)) {
        PairHealth pair{.low = std::min(one, other), .high = std::max(one, other), .stage = stage};
        const bool is_slow = pair.low == 5 || pair.high == 5;
        if (pair.low == 3 || pair.high == 3) {
          pair.why_not = "the connection is not answered";
        } else if (pair.low == 6 && pair.high == 7) {
          pair.why_not = "the connection was reset after 1.2 MiB";
        } else {
          pair.passed = true;
          pair.ms = is_slow ? 4.1 : 0.5 + 0.02 * ((pair.low * 7 + pair.high * 3) % 9);
          pair.latency_us = is_slow ? 210 : 38 + (pair.low + pair.high) % 6;
          pair.clock_ms = 0.1 * (pair.high - pair.low);
        }
        report.pairs.push_back(pair);
        tests.push_back({.low = pair.low, .high = pair.high, .passed = pair.passed, .time_ms = pair.ms});
      }
    }
  };
  const auto facts = [&] {
    std::vector<StageFacts> out;
    for (const auto& ms : best_times(figures.size(), tests)) out.push_back({.time_ms = ms});
    return out;
  };
  run(neighbours(nodes), 1);
  run(second_stage(facts(), tests), 2);
  run(third_stage(facts(), tests, usual_exchange_ms(best_times(figures.size(), tests))), 3);
  Judgement found = judge(figures, tests);
  for (NodeHealth& node : report.nodes) {
    node.verdict = found.nodes[static_cast<std::size_t>(node.rank)];
    node.left_out = node.verdict.fitness == Fitness::kFaulty;
  }
  report.bad_links = found.bad_links;
  report.slow_links = found.slow_links;
  return report;
}

// The same report, where each node has eight GPUs that were tested over NCCL.
inline HealthReport example_gpu_report() {
  HealthReport report = example_report();
  for (NodeHealth& node : report.nodes) {
    node.gpu = GpuVersions{.gpus = 8,
                           .model = "NVIDIA H100",
                           .driver = "580.65.06",
                           .cuda = "13.0",
                           .nccl = node.rank == 6 ? "2.27.3" : "2.28.9",
                           .nccl_path = "/p/libnccl.so.2",
                           .cublaslt = "13.1.0",
                           .cublaslt_path = "/p/libcublasLt.so.13"};
    node.gpu_figures = GpuFigures{.product_ms = 1.5,
                                  .tflops = 720.5 - node.rank,
                                  .memory_gbps = 2905,
                                  .host_to_device_gbps = 55.1,
                                  .device_to_host_gbps = 54.3,
                                  .node_ms = 1.2,
                                  .gathers = 8};
  }
  for (PairHealth& pair : report.pairs) {
    if (!pair.passed) continue;
    pair.gpu_ms = 2.5;
    pair.gpu_ranks = 16;
    pair.gpu_bytes = kGatherBytes;
    pair.gpu_latency_us = 20.5;
  }
  report.by_nccl = true;
  return report;
}

}  // namespace elastic::health
