#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "health/judge/judge.h"
#include "health/messages/messages.h"

// The results of a check before training as one value, and figures and sentences made of it for a terminal
// (health_table), for tools (health_json, dlrover_lines) and for a page (health_html).
namespace elastic::health {

struct NodeHealth {
  int rank = 0;                            // the node rank, which is the index in HealthReport::nodes
  std::string name = {};                   // the host name or address; empty: not known
  int local_world_size = 0;                // how many workers it has
  std::optional<double> compute_ms = {};   // the time of one matrix product
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
  double ms = 0;                              // the time of one exchange over TCP; only if the test passed
  std::optional<double> latency_us = {};      // the time of one byte over TCP, one way
  std::optional<double> clock_ms = {};        // how far the wall clock of `high` is ahead of that of `low`
  std::optional<double> gpu_ms = {};          // the time of an all-gather over NCCL; none: there was none, or it failed
  int gpu_ranks = 0;                          // how many GPUs took part in it
  std::int64_t gpu_bytes = 0;                 // the size of each GPU's block
  std::optional<double> gpu_latency_us = {};  // the time of an all-gather of a few bytes
  std::string gpu_why_not = {};  // why the all-gather failed, as a clause; the test may have passed over TCP
  std::string why_not = {};      // why the test failed, as a clause
};

// The all-gather over TCP of all nodes that are fit.
struct AllGather {
  int nodes = 0;
  std::int64_t bytes = kExchangeBytes;  // the size of each node's block
  std::optional<double> ms = {};        // the slowest node's median, above 0; none: it failed
  std::string why_not = {};             // why it failed, as a clause with the node that reported it
};

struct HealthReport {
  std::string job = {};
  std::int64_t round = 0;
  std::int64_t wall_ms = 0;                      // Unix time at which the check was over; 0: not known
  std::vector<double> phase_ms = {};             // the time of each phase (health/messages), by the coordinator's clock
  std::int64_t exchange_bytes = kExchangeBytes;  // the bytes of one exchange, each way; 0: not known
  std::vector<NodeHealth> nodes = {};            // by node rank
  std::vector<PairHealth> pairs = {};            // in the order of the stages; all ranks are in `nodes`
  std::vector<PairTest> bad_links = {};          // Judgement::bad_links
  std::vector<PairTest> slow_links = {};
  std::optional<AllGather> all_gather = {};  // none: it was not asked for, or fewer than two nodes are fit
  bool by_nccl = false;  // nodes were judged by times over NCCL, since all pairs that passed have one
  JudgeSettings settings = {};
};

// The two ways over which two nodes are tested.
enum class Way { kTcp, kNccl };
Way judged_way(const HealthReport& report);

// The verdict about a node, the worst first.
enum class Standing { kFaulty, kUndetermined, kSlow, kFit };

Standing standing_of(const NodeHealth& node);
const char* standing_name(Standing standing);  // "faulty", "undetermined", "slow", "fit"
std::vector<int> ranks_of(const HealthReport& report, Standing standing);
// All nodes, the worst first, then by rank. The report owns them.
std::vector<const NodeHealth*> worst_first(const HealthReport& report);

// The time of a test, in ms. Nothing for a test that failed, or was not made over this way.
std::optional<double> test_ms(const PairHealth& pair, Way way);
// The bus bandwidth between two nodes in 10^9 bytes/s, as nccl-tests computes it for an all-gather of n ranks with S
// bytes each: algobw = n * S / t and busbw = algobw * (n - 1) / n, which is (n - 1) * S / t. Over TCP n is 2, over NCCL
// it is the number of GPUs of both nodes. Nothing for a test that failed, took no time, or was not made over this way.
std::optional<double> busbw_gbps(const HealthReport& report, const PairHealth& pair, Way way);
// The median of all tests that passed.
std::optional<double> median_busbw_gbps(const HealthReport& report, Way way);

// The bandwidths of the all-gather of all nodes in 10^9 bytes/s, as nccl-tests computes them: for n nodes with S bytes
// each, algobw = n * S / t and busbw = algobw * (n - 1) / n. Nothing where it was not measured.
struct AllGatherRate {
  double algobw_gbps = 0;
  double busbw_gbps = 0;
};
std::optional<AllGatherRate> all_gather_rate(const HealthReport& report);

// The figures of the tests that a node has passed.
struct NodeExchanges {
  std::optional<double> best_busbw_gbps = {};
  std::optional<double> worst_busbw_gbps = {};
  std::optional<double> latency_us = {};  // the least
};
std::vector<NodeExchanges> exchanges_of_nodes(const HealthReport& report, Way way);  // by rank

// The tests, the worst first: those that failed, then by the time over judged_way(). The report owns them.
std::vector<const PairHealth*> worst_pairs_first(const HealthReport& report);

// A finding and all nodes that have it. The most severe finding is first, then the order is by node.
struct SharedFinding {
  Finding finding;
  std::vector<int> nodes;
};
std::vector<SharedFinding> shared_findings(const HealthReport& report);

// --- Sentences. Names and reasons come from other nodes; each text that is returned is printable and one line. ---

// The printable form of a text that another node sent, cut to so many bytes.
std::string shown(std::string_view text, std::size_t max_bytes = 300);
// "node 3 (10.0.0.4)", or "node 3".
std::string node_text(const HealthReport& report, int rank);
// "node 3", "nodes 3, 5-7"; with "and so on" where there are too many for a line.
std::string nodes_text(const std::vector<int>& ranks);
// A figure with about three digits: "0.52", "8.21", "41.5", "1280"; "-" for none.
std::string figure_text(const std::optional<double>& value);
// The reason of a node's verdict, as a clause; empty for a node that is fit.
std::string why_text(const NodeHealth& node);
// How long the check took, in ms; nothing if it is not known.
std::optional<double> took_ms(const HealthReport& report);

// Whether any node has tested its GPUs.
bool has_gpus(const HealthReport& report);
// The GPUs and the libraries with which they were tested, one sentence for all nodes that have the same: "nodes 0-7: 8
// x NVIDIA H100, driver 580.65.06, NCCL 2.28.9 (/p/libnccl.so.2), cuBLASLt 13.0.0 (/p/libcublasLt.so.13)".
std::vector<std::string> gpu_sentences(const HealthReport& report);

// "8 nodes checked in 0.6 s: 6 fit, node 3 (10.0.0.4) is faulty, node 5 (10.0.0.6) is slow in the exchange"
std::string sentence(const HealthReport& report);
// A number of bytes of an exchange or a block: "2 MiB". 0 means that it is not known.
std::string block_text(std::int64_t bytes);
// "all-gather of 8 nodes over TCP, 2 MiB each: 21.5 ms, algobw 0.78 GB/s, busbw 0.68 GB/s", or why it failed; empty if
// there was none.
std::string all_gather_sentence(const HealthReport& report);
// One sentence for each bad link, then one for each slow link, with what to do.
std::vector<std::string> link_sentences(const HealthReport& report);
// What to do about undetermined nodes; empty if there are none.
std::string undetermined_sentence(const HealthReport& report);

}  // namespace elastic::health
