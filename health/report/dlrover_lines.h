#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "health/report/health_report.h"

// The log lines of DLRover's node check that tools search for, byte by byte as DLRover writes them: rounds and verdict
// as in 0.3.7 (later versions add reasons and groups), the all-gather as in 0.4.0. A round is a stage of pairs; DLRover
// always has two, here there may be one to three.
namespace elastic::health {

// "Round 1: The node status are {0: True, 1: False}.": for each node rank, whether the node has passed a test in this
// round or an earlier one. For a node without a partner its own tests decide.
std::string status_line(const HealthReport& report, int round);

// "Round 1: The node elapsed time are {0: 7.512, 1: 3600}": for each node rank, the time of its matrix product plus
// that of its best exchange in this round or an earlier one, in ms, as DLRover has it on GPUs since 0.4.0 (seconds
// before that). As in DLRover, 3600 stands for a node that has failed.
std::string elapsed_line(const HealthReport& report, int round);

// "Fault nodes are: [1]  and stragglers are: []." Undetermined nodes are not listed as faulty; DLRover lists them.
std::string verdict_line(const HealthReport& report);

// DLRover's agent writes this line, and ends, where 30 % or more of a GPU's memory are in use before the first check.
// Here it is written once for each such node.
inline constexpr const char* kGpuCheckFailedLine = "The node's GPU basic check failed.";

// All lines: kGpuCheckFailedLine, then status_line() and elapsed_line() for each round, then verdict_line().
std::vector<std::string> dlrover_lines(const HealthReport& report);

// "AllGather Perf: world size = 2, algobw=7.81 GB/s, busbw=3.91 GB/s.": DLRover's figures are in GiB/s and count the
// bytes of one rank only, so that for two ranks its busbw is 0.47 times that of nccl-tests and busbw_gbps(). `ms` is
// above 0.
std::string allgather_line(int world_size, std::int64_t bytes_per_rank, double ms);

}  // namespace elastic::health
