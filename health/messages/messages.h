#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "src/base/fields.h"

// The messages of the check before training, between the coordinator and the nodes, and between a node and its probe:
// each is a JSON object, by its list of fields (src/base/fields.h).
namespace elastic::health {

// The phases of the check before training, in their order. A node that is alone makes the first one only, and the last
// one is made with --comm-perf-test only.
inline constexpr std::uint32_t kSelfPhase = 0;         // each node tests itself, and opens a port for the other phases
inline constexpr std::uint32_t kFirstPairsPhase = 1;   // two nodes at a time test the way between them: neighbours
inline constexpr std::uint32_t kSecondPairsPhase = 2;  // others, chosen by the results of the phase before
inline constexpr std::uint32_t kThirdPairsPhase = 3;   // only nodes that have passed no test yet, or were slow in all
inline constexpr std::uint32_t kRingPhase = 4;         // all nodes that are fit measure an all-gather

// The size of the block that each of two nodes sends to the other over TCP, the same for all tests.
inline constexpr std::int64_t kExchangeBytes = 2 * 1024 * 1024;

// The size of each GPU's block in an all-gather over NCCL; DLRover's size.
inline constexpr std::int64_t kGatherBytes = 64 * 1024 * 1024;
// The most GPUs of a node that are tested.
inline constexpr int kMostGpus = 64;

enum class Severity { kNote, kWarning, kFatal };
constexpr auto names_of(Severity) { return std::array{"note", "warning", "fatal"}; }
constexpr const char* severity_name(Severity severity) {
  return names_of(severity).at(static_cast<std::size_t>(severity));
}

// Something about a host or its GPUs that makes training fail or slows it down.
struct Finding {
  Severity severity = Severity::kNote;
  std::string what;        // "/dev/shm is small: 64 MiB"
  std::string where = {};  // a path, an interface
  std::string remedy = {};
  std::string name = {};  // the rule's, in docs/health.md: "gpu-memory"; empty: no rule has found it
  bool operator==(const Finding&) const = default;
  static void fields(auto& io, auto& v) {
    io.must("severity", v.severity);
    each(io, "what", v.what, "where", v.where, "remedy", v.remedy, "name", v.name);
  }
};

struct NodeFinding {
  int node = 0;  // node rank
  Finding finding;
};

// The active port of InfiniBand or RoCE that is nearest to a GPU.
struct NearestPort {
  std::string gpu = {};       // the GPU's PCI bus id
  std::string distance = {};  // as nvidia-smi topo -m names it: "PIX", "PXB", "PHB", "NODE", "SYS"
  std::string port = {};      // "mlx5_0 port 1"
  bool operator==(const NearestPort&) const = default;
  static void fields(auto& io, auto& v) { each(io, "gpu", v.gpu, "distance", v.distance, "port", v.port); }
};

// A node's GPUs and the versions of their software. An empty text: not known.
struct GpuVersions {
  int gpus = 0;  // how many its workers see
  std::string model = {};
  std::string driver = {};
  std::string cuda = {};  // the newest that the driver supports
  std::string nccl = {};
  std::string nccl_path = {};
  std::string cublaslt = {};
  std::string cublaslt_path = {};
  std::vector<NearestPort> nearest_ports = {};  // one for each GPU; none where there is no such port
  bool operator==(const GpuVersions&) const = default;
  static void fields(auto& io, auto& v) {
    io("gpus", v.gpus, at_most(INT16_MAX));
    each(io, "model", v.model, "driver", v.driver, "cuda", v.cuda, "nccl", v.nccl, "nccl_path", v.nccl_path);
    each(io, "cublaslt", v.cublaslt, "cublaslt_path", v.cublaslt_path);
    io.if_set("nearest_ports", v.nearest_ports, at_most(kMostGpus));
  }
};

// What was measured of a node's GPUs without other nodes. Where a node has several GPUs, it is the slowest one's
// figure.
struct GpuFigures {
  std::optional<double> product_ms = {};   // the time of one matrix product
  std::optional<double> tflops = {};       // 10^12 operations/s in that product
  std::optional<double> memory_gbps = {};  // 10^9 bytes/s, read and written, in a copy within the GPU
  std::optional<double> host_to_device_gbps = {};
  std::optional<double> device_to_host_gbps = {};
  std::optional<double> node_ms = {};  // the time of an all-gather of the node's GPUs; none where there is one GPU
  int gathers = 0;                     // how many GPUs can take part in an all-gather
  bool operator==(const GpuFigures&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "product_ms", v.product_ms, "tflops", v.tflops, "memory_gbps", v.memory_gbps);
    each(io, "host_to_device_gbps", v.host_to_device_gbps, "device_to_host_gbps", v.device_to_host_gbps);
    io("node_ms", v.node_ms);
    io("gathers", v.gathers, at_most(2 * kMostGpus));
  }
};

// The steps of a node's own GPU test, in their order.
enum class GpuStep { kOpen, kCompute, kGather };
constexpr auto names_of(GpuStep) { return std::array{"open", "compute", "gather"}; }

// A step that failed without showing that a GPU is at fault: an error of a call or a library, a probe that died or
// hung.
struct GpuFailure {
  GpuStep step = GpuStep::kOpen;
  std::string why = {};  // as a clause
  bool operator==(const GpuFailure&) const = default;
  static void fields(auto& io, auto& v) {
    io.must("step", v.step);
    io("why", v.why);
  }
};

// A node's answer in kSelfPhase, in which it tests itself and opens a port for the tests that follow.
struct SelfResult {
  std::uint16_t port = 0;
  std::string key = {};                    // which a probe has to send that connects to the port
  std::optional<double> compute_ms = {};   // the time of a matrix product
  std::optional<double> memory_gbps = {};  // 10^9 bytes/s, read and written
  std::vector<Finding> findings = {};
  std::string unhealthy = {};  // why the node cannot train, as a clause; empty: it can
  // With --check-probe: a free port, the MASTER_PORT of tests in which this node has the lower rank. 0: the node has no
  // external probe.
  std::uint16_t master_port = 0;
  std::optional<GpuVersions> gpu = {};
  std::optional<GpuFigures> gpu_figures = {};
  std::optional<GpuFailure> gpu_failure = {};  // the first one; a GPU's own fault is told as `unhealthy` instead
  bool operator==(const SelfResult&) const = default;
  static void fields(auto& io, auto& v) {
    io.must("port", v.port);
    each(io, "key", v.key, "compute_ms", v.compute_ms, "memory_gbps", v.memory_gbps);
    io.if_set("findings", v.findings);
    io.if_set("unfit", v.unhealthy);
    io.if_set("master_port", v.master_port);
    each(io, "gpu", v.gpu, "gpu_figures", v.gpu_figures, "gpu_failure", v.gpu_failure);
  }
};

// One test that a node is to make with another one. All members but `after` describe the other node.
struct PairOrder {
  int with = 0;                      // node rank; the node with the lower rank waits, the other one connects
  std::string name = {};             // for messages
  std::vector<std::string> at = {};  // numeric addresses
  std::uint16_t port = 0;
  std::string key = {};
  int after = 0;                  // how many tests of this phase may come before this one, on either node
  std::uint16_t master_port = 0;  // SelfResult::master_port; 0: left out of the message, with local_world_size
  int local_world_size = 1;
  int gpus = 0;  // how many of its GPUs take part in an all-gather over NCCL after the exchange; 0: there is none
  bool operator==(const PairOrder&) const = default;
  static void fields(auto& io, auto& v) {
    io.must("with", v.with);
    each(io, "name", v.name, "at", v.at, "port", v.port, "key", v.key);
    io("after", v.after, at_most(INT16_MAX));
    io.if_set("gpus", v.gpus, at_most(2 * kMostGpus));
    io.if_set("master_port", v.master_port);
    if (v.master_port != 0) io("local_world_size", v.local_world_size, {1, INT16_MAX});
  }
};

// The tests that a node is to make, in order.
struct PairOrders {
  int rank = 0;  // its own node rank
  std::vector<PairOrder> tests = {};
  bool operator==(const PairOrders&) const = default;
  static void fields(auto& io, auto& v) {
    io.must("rank", v.rank);
    io.must("tests", v.tests);
  }
};

// Why the all-gather of two nodes' GPUs failed.
struct GatherFailure {
  std::string why = {};    // as a clause; empty: the other node knows it
  bool is_defect = false;  // a GPU or a link is at fault, not a library: bytes arrived wrong
  bool operator==(const GatherFailure&) const = default;
  static void fields(auto& io, auto& v) { each(io, "gpu_failed", v.why, "gpu_defect", v.is_defect); }
};

// The result of one test.
struct PairResult {
  int with = 0;                           // the other node's rank
  std::optional<double> ms = {};          // the time of one exchange over TCP; none: the test failed
  std::optional<double> latency_us = {};  // half of the round trip time of a few bytes
  std::optional<double> clock_ms = {};    // how far the other node's wall clock is ahead of ours
  std::optional<double> gpu_ms = {};      // the time of an all-gather of both nodes' GPUs; none: there was none
  int gpu_ranks = 0;                      // how many GPUs took part in it
  std::int64_t gpu_bytes = 0;             // the size of each GPU's block
  std::optional<double> gpu_latency_us = {};
  std::optional<GatherFailure> gpu_failure = {};  // none: the all-gather passed, or none was ordered
  std::string why_not = {};                       // why the test failed, as a clause
  bool operator==(const PairResult&) const = default;
  static void fields(auto& io, auto& v) {
    io.must("with", v.with);
    each(io, "ms", v.ms, "latency_us", v.latency_us);
    io("clock_ms", v.clock_ms, {-(1LL << 53), 1LL << 53});
    io("gpu_ms", v.gpu_ms);
    if (v.gpu_ms) {
      io("gpu_ranks", v.gpu_ranks, at_most(2 * kMostGpus));
      io("gpu_bytes", v.gpu_bytes, {0, INT64_MAX / kMostGpus});
    }
    io("gpu_latency_us", v.gpu_latency_us);
    io.beside("gpu_failed", v.gpu_failure);
    if (!v.ms) io("failed", v.why_not);
  }
};

// A node's answer to PairOrders.
struct PairResults {
  std::vector<PairResult> tests = {};
  std::vector<Finding> findings = {};  // those that the node has not told before
  bool operator==(const PairResults&) const = default;
  static void fields(auto& io, auto& v) {
    io.must("tests", v.tests);
    io.if_set("findings", v.findings);
  }
};

// A node's place in the ring of kRingPhase, in which nodes are ordered by rank.
struct RingOrder {
  int rank = 0;     // its own node rank
  int place = 0;    // from 0
  int members = 2;  // at least 2
  PairOrder previous = {};
  PairOrder next = {};  // in a ring of two, the same node as `previous`
  bool operator==(const RingOrder&) const = default;
  static void fields(auto& io, auto& v) {
    io.must("rank", v.rank);
    io.inside("ring", [&v](auto& ring) {
      ring.must("place", v.place);
      ring.must("members", v.members, {2, INT32_MAX});
      ring.must("previous", v.previous);
      ring.must("next", v.next);
    });
  }
};

// A node's answer to a RingOrder.
struct RingResult {
  std::optional<double> ms = {};  // the time of one all-gather, above 0; none: it failed
  std::string why_not = {};
  bool for_others = false;  // it failed because of another node, whose own answer says more
  bool operator==(const RingResult&) const = default;
  static void fields(auto& io, auto& v) {
    io.inside("all_gather", [&v](auto& all) {
      all("ms", v.ms);
      if (v.ms) return;
      all("failed", v.why_not);
      all("for_others", v.for_others);
    });
  }
};

std::string text_of(const SelfResult& result);
std::string text_of(const PairOrders& orders);
std::string text_of(const PairResults& results);
std::string text_of(const RingOrder& order);
std::string text_of(const RingResult& result);

// What a node is told to do in a phase after kSelfPhase, and what it answers in any phase.
using CheckOrder = std::variant<PairOrders, RingOrder>;
using CheckResult = std::variant<SelfResult, PairResults, RingResult>;

// Nothing where the text is no order.
std::optional<CheckOrder> read_check_order(const std::string& text);
// Nothing where the text is no result of that phase. In kRingPhase, a node outside of the ring answers PairResults.
std::optional<CheckResult> read_check_result(std::uint32_t phase, const std::string& text);
// The result of an order whose tests all failed for the reason `why`, a clause.
std::string text_of_failed(const CheckOrder& order, const std::string& why);

}  // namespace elastic::health
