#include "health/report/dlrover_lines.h"

#include <doctest/doctest.h>

#include "health/report/report_test_support.h"

using namespace elastic::health;

TEST_CASE("DLRover's lines of a check are written byte by byte, a round for each stage") {
  const HealthReport report{
      .nodes = {{.rank = 0, .compute_ms = 3}, {.rank = 1, .compute_ms = 3.0004}, {.rank = 2}, {.rank = 3}},
      .pairs = {{.low = 0, .high = 1, .stage = 1},
                {.low = 2, .high = 3, .stage = 1, .passed = true, .ms = 20.3071},
                {.low = 1, .high = 2, .stage = 2, .passed = true, .ms = 4.5},
                {.low = 0, .high = 3, .stage = 2}}};
  HealthReport judged = report;
  judged.nodes[0].verdict.fitness = Fitness::kFaulty;
  judged.nodes[3].verdict.is_slow_in_exchange = true;
  CHECK(dlrover_lines(judged) ==
        std::vector<std::string>{"Round 1: The node status are {0: False, 1: False, 2: True, 3: True}.",
                                 "Round 1: The node elapsed time are {0: 3600, 1: 3600, 2: 20.307, 3: 20.307}",
                                 "Round 2: The node status are {0: False, 1: True, 2: True, 3: True}.",
                                 "Round 2: The node elapsed time are {0: 3600, 1: 7.5, 2: 4.5, 3: 20.307}",
                                 "Fault nodes are: [0]  and stragglers are: [3]."});
  CHECK(verdict_line(report) == "Fault nodes are: []  and stragglers are: [].");
}

TEST_CASE("a node that was passed once stays True in DLRover's status, and its time is its best") {
  const HealthReport report{.nodes = {{.rank = 0}, {.rank = 1}, {.rank = 2}},
                            .pairs = {{.low = 0, .high = 1, .stage = 1, .passed = true, .ms = 2},
                                      {.low = 0, .high = 2, .stage = 2},
                                      {.low = 1, .high = 2, .stage = 3, .passed = true, .ms = 9}}};
  CHECK(status_line(report, 2) == "Round 2: The node status are {0: True, 1: True, 2: False}.");
  CHECK(elapsed_line(report, 3) == "Round 3: The node elapsed time are {0: 2.0, 1: 2.0, 2: 9.0}");
}

TEST_CASE("a node that has nobody to test with is what it is by itself") {
  HealthReport report{.nodes = {{.rank = 0, .compute_ms = 3.25}}};
  CHECK(dlrover_lines(report) == std::vector<std::string>{"Round 1: The node status are {0: True}.",
                                                          "Round 1: The node elapsed time are {0: 3.25}",
                                                          "Fault nodes are: []  and stragglers are: []."});
  report.nodes[0].verdict.fitness = Fitness::kFaulty;
  CHECK(status_line(report, 1) == "Round 1: The node status are {0: False}.");
  CHECK(elapsed_line(report, 1) == "Round 1: The node elapsed time are {0: 3600}");
}

TEST_CASE("DLRover's bandwidths are GiB/s of one rank's bytes, rounded as Python rounds them") {
  CHECK(allgather_line(2, 4 << 20, 0.5) == "AllGather Perf: world size = 2, algobw=7.81 GB/s, busbw=3.91 GB/s.");
  CHECK(allgather_line(4, 1 << 26, 62.5) == "AllGather Perf: world size = 4, algobw=1.0 GB/s, busbw=0.75 GB/s.");
  CHECK(allgather_line(1, 1 << 26, 62.5) == "AllGather Perf: world size = 1, algobw=1.0 GB/s, busbw=0.0 GB/s.");
}

TEST_CASE("of each node whose GPUs have too much memory in use DLRover's words are written") {
  HealthReport report{.nodes = {{.rank = 0}, {.rank = 1}, {.rank = 2}}};
  CHECK(dlrover_lines(report).front().starts_with("Round 1"));
  report.nodes[0].findings = {{.severity = Severity::kFatal, .what = "3 errors", .name = "gpu-ecc"}};
  for (const std::size_t node : {1U, 2U})
    report.nodes[node].findings = {{.severity = Severity::kFatal, .what = "60 %", .name = "gpu-memory"}};
  const std::vector<std::string> lines = dlrover_lines(report);
  CHECK(std::ranges::count(lines, "The node's GPU basic check failed.") == 2);
  CHECK(lines[2].starts_with("Round 1"));
}
