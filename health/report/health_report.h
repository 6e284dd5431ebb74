#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "health/judge/judge.h"
#include "health/messages/messages.h"

// What a check before training found, as one value, and what follows from it for all who show it: a terminal
// (health_table), tools (health_json, dlrover_lines) and a page (health_html).
namespace elastic::health {

struct NodeHealth {
  int rank = 0;                            // of the node; its index in HealthReport::nodes
  std::string name = {};                   // its host or address, for people; empty: not known
  int local_world_size = 0;                // its workers
  std::optional<double> compute_ms = {};   // of one matrix product
  std::optional<double> memory_gbps = {};  // 10^9 bytes/s, read and written
  std::optional<GpuVersions> gpu = {};
  std::optional<GpuFigures> gpu_figures = {};
  std::vector<Finding> findings = {};
  NodeVerdict verdict = {};
  bool left_out = false;  // the job goes on without it
};

// One test between two nodes.
struct PairHealth {
  int low = 0;  // node ranks
  int high = 0;
  int stage = 1;  // 1 to 3
  bool passed = false;
  double ms = 0;                              // of one exchange over TCP; only if it passed
  std::optional<double> latency_us = {};      // of one byte over TCP, one way
  std::optional<double> clock_ms = {};        // how far the wall clock of `high` is ahead of that of `low`
  std::optional<double> gpu_ms = {};          // of an all-gather over NCCL; none: there was none
  int gpu_ranks = 0;                          // GPUs in it
  std::int64_t gpu_bytes = 0;                 // of each
  std::optional<double> gpu_latency_us = {};  // of an all-gather of a few bytes
  std::string gpu_why_not = {};  // as a clause, if it failed; the test may have passed by what it has over TCP
  std::string why_not = {};      // as a clause, if it failed
};

// An all-gather of all nodes that are fit, in a ring.
struct AllGather {
  int nodes = 0;
  std::int64_t bytes = kExchangeBytes;  // of each
  std::optional<double> ms = {};        // above 0: the slowest node's median; none: it failed
  std::string why_not = {};             // as a clause, if it failed, with the node that says so
};

struct HealthReport {
  std::string job = {};
  std::int64_t round = 0;
  std::int64_t wall_ms = 0;  // Unix time at which the check was over; 0: not known
  std::vector<double> phase_ms =
      {};  // of each phase, by the coordinator's clock: the nodes by themselves, then pairs, then all
  std::int64_t exchange_bytes = kExchangeBytes;  // of one exchange, each way; 0: not known
  std::vector<NodeHealth> nodes = {};            // by rank, from 0
  std::vector<PairHealth> pairs = {};            // in the order of the stages; ranks of `nodes` only
  std::vector<PairTest> bad_links = {};          // as Judgement has them
  std::vector<PairTest> slow_links = {};
  std::optional<AllGather> all_gather = {};  // none: nobody has asked for it, or fewer than two nodes are fit
  bool by_nccl = false;  // nodes were judged by NCCL's times: all pairs that passed have gathered over it
  JudgeSettings settings = {};
};

// Over what two nodes were tested.
enum class Way { kTcp, kNccl };
Way judged_way(const HealthReport& report);

// What a node is in the end, worst first.
enum class Standing { kFaulty, kUndetermined, kSlow, kFit };

Standing standing_of(const NodeHealth& node);
const char* standing_name(Standing standing);  // "faulty", "undetermined", "slow", "fit"
std::vector<int> ranks_of(const HealthReport& report, Standing standing);
// All nodes, worst first, then by rank. They belong to the report.
std::vector<const NodeHealth*> worst_first(const HealthReport& report);

// The time of a test, in ms. Nothing for one that failed, or was not made over this.
std::optional<double> test_ms(const PairHealth& pair, Way way);
// Bytes in 10^9/s on the way between two nodes, as nccl-tests computes busbw for an all-gather of n ranks: with S bytes
// each, algobw = n * S / t and busbw = algobw * (n - 1) / n, which is (n - 1) * S / t. Over TCP n is 2, over NCCL the
// GPUs of both nodes. Nothing for a test that failed, or took no time, or was not made over this.
std::optional<double> busbw_gbps(const HealthReport& report, const PairHealth& pair, Way way);
// Of all passed tests the middle one.
std::optional<double> median_busbw_gbps(const HealthReport& report, Way way);

// The all-gather in 10^9 bytes/s as nccl-tests has it: of n nodes with S bytes each algobw = n * S / t, and busbw =
// algobw * (n - 1) / n. Nothing where none was measured.
struct AllGatherRate {
  double algobw_gbps = 0;
  double busbw_gbps = 0;
};
std::optional<AllGatherRate> all_gather_rate(const HealthReport& report);

// A node's passed tests in figures.
struct NodeExchanges {
  std::optional<double> best_busbw_gbps = {};
  std::optional<double> worst_busbw_gbps = {};
  std::optional<double> latency_us = {};  // the least
};
std::vector<NodeExchanges> exchanges_of_nodes(const HealthReport& report, Way way);  // by rank

// The tests, worst first: those that failed, then by the time that was judged. They belong to the report.
std::vector<const PairHealth*> worst_pairs_first(const HealthReport& report);

// A finding and all nodes that have it, the most severe first, then by node.
struct SharedFinding {
  Finding finding;
  std::vector<int> nodes;
};
std::vector<SharedFinding> shared_findings(const HealthReport& report);

// --- Words. Names and reasons come from other machines: what is returned is fit for a terminal, on one line. ---

// A text of another machine, at most so many bytes of it.
std::string shown(std::string_view text, std::size_t max_bytes = 300);
// "node 3 (10.0.0.4)", or "node 3".
std::string node_text(const HealthReport& report, int rank);
// "node 3", "nodes 3, 5-7", with "and so on" where they are too many for a line.
std::string nodes_text(const std::vector<int>& ranks);
// A figure with about three digits: "0.52", "8.21", "41.5", "1280"; "-" for none.
std::string figure_text(const std::optional<double>& value);
// Why a node is what it is, as a clause; empty for one that is fit.
std::string why_text(const NodeHealth& node);
// How long the check took, in ms; nothing if nobody knows.
std::optional<double> took_ms(const HealthReport& report);

// Whether some node has tested its GPUs.
bool has_gpus(const HealthReport& report);
// Which libraries GPUs were tested with: "nodes 0-7: 8 x NVIDIA H100, driver 580.65.06, NCCL 2.28.9 (/p/libnccl.so.2),
// cuBLASLt 13.0.0 (/p/libcublasLt.so.13)", one sentence for all nodes that have the same.
std::vector<std::string> gpu_sentences(const HealthReport& report);

// "8 nodes checked in 0.6 s: 6 fit, node 3 (10.0.0.4) is faulty, node 5 (10.0.0.6) is slow in the exchange"
std::string sentence(const HealthReport& report);
// The bytes of one exchange, or of each node's block: "2 MiB".
std::string block_text(std::int64_t bytes);
// "all-gather of 8 nodes over TCP, 2 MiB each: 21.5 ms, algobw 0.78 GB/s, busbw 0.68 GB/s", or that it failed, and why;
// empty if there was none.
std::string all_gather_sentence(const HealthReport& report);
// Each bad link, then each slow one, with what to do.
std::vector<std::string> link_sentences(const HealthReport& report);
// What to do about nodes of which nobody knows whether they are fit; empty if there are none.
std::string undetermined_sentence(const HealthReport& report);

}  // namespace elastic::health
