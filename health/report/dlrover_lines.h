#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "health/report/health_report.h"

// The log lines of DLRover's node check that tools look for, byte by byte as DLRover writes them: the rounds and the
// verdict as 0.3.7, to which later versions add reasons and groups; the all-gather as 0.4.0. A round is a stage of
// pairs; where DLRover always has two, there may be one or three.
namespace elastic::health {

// "Round 1: The node status are {0: True, 1: False}.": by node rank, whether it has passed a test in this round or one
// before. A node that has nobody to test with is what it is by itself.
std::string status_line(const HealthReport& report, int round);

// "Round 1: The node elapsed time are {0: 7.512, 1: 3600}": by node rank, its matrix product and its best exchange in
// this round or one before, together in ms, as DLRover has had them on GPUs since 0.4.0 (before that, in seconds). 3600
// for one that has failed, as there.
std::string elapsed_line(const HealthReport& report, int round);

// "Fault nodes are: [1]  and stragglers are: []." Faulty are those that the judge names, and nobody who is
// undetermined; DLRover names those as well.
std::string verdict_line(const HealthReport& report);

// "The node's GPU basic check failed.": DLRover's agent writes it where 30 % or more of a GPU's memory are in use
// before the first check, and ends; once for each such node.
inline constexpr const char* kGpuCheckFailedLine = "The node's GPU basic check failed.";

// All of them: what GPUs have in use, both of the first for each round, and the verdict.
std::vector<std::string> dlrover_lines(const HealthReport& report);

// "AllGather Perf: world size = 2, algobw=7.81 GB/s, busbw=3.91 GB/s.": DLRover's figures, which are GiB/s and count
// the bytes of one rank alone, so that its busbw is 0.47 of what nccl-tests (and busbw_gbps()) says. `ms` is above 0.
std::string allgather_line(int world_size, std::int64_t bytes_per_rank, double ms);

}  // namespace elastic::health
