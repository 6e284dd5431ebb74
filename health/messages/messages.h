#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What the nodes of a check and the coordinator tell each other, and a node its probe: JSON, each text an object.
namespace elastic::health {

// Of a block that two nodes exchange, each way: the same for all.
inline constexpr std::int64_t kExchangeBytes = 2 * 1024 * 1024;

// Of each GPU's block in an all-gather over NCCL, DLRover's size.
inline constexpr std::int64_t kGatherBytes = 64 * 1024 * 1024;
// Of a node.
inline constexpr int kMostGpus = 64;

enum class Severity { kNote, kWarning, kFatal };
const char* severity_name(Severity severity);  // "note", "warning", "fatal"

// Something about a host that is not as training wants it.
struct Finding {
  Severity severity = Severity::kNote;
  std::string what;        // "/dev/shm is small: 64 MiB"
  std::string where = {};  // a path, an interface
  std::string remedy = {};
  std::string name = {};  // of the rule in docs/health.md: "gpu-memory"; empty: of none
  bool operator==(const Finding&) const = default;
};

struct NodeFinding {
  int node = 0;  // rank
  Finding finding;
};

// The active port of InfiniBand or RoCE that is nearest to a GPU.
struct NearestPort {
  std::string gpu = {};       // its bus id
  std::string distance = {};  // in the words of nvidia-smi topo -m: "PIX", "PXB", "PHB", "NODE", "SYS"
  std::string port = {};      // "mlx5_0 port 1"
  bool operator==(const NearestPort&) const = default;
};

// What a node has of GPUs and of their software: "" is not known.
struct GpuVersions {
  int gpus = 0;  // that its workers see
  std::string model = {};
  std::string driver = {};
  std::string cuda = {};  // of the driver
  std::string nccl = {};
  std::string nccl_path = {};
  std::string cublaslt = {};
  std::string cublaslt_path = {};
  std::vector<NearestPort> nearest_ports = {};  // of its GPUs; none where there is no such port
  bool operator==(const GpuVersions&) const = default;
};

// What the GPUs of a node have done by themselves: of several the slowest one's.
struct GpuFigures {
  std::optional<double> product_ms = {};   // of one matrix product
  std::optional<double> tflops = {};       // 10^12 operations/s in it
  std::optional<double> memory_gbps = {};  // 10^9 bytes/s, read and written, of a copy on the GPU
  std::optional<double> host_to_device_gbps = {};
  std::optional<double> device_to_host_gbps = {};
  std::optional<double> node_ms = {};  // of an all-gather of the node's GPUs; none where there is one GPU
  int gathers = 0;                     // so many GPUs can take part in an all-gather
  bool operator==(const GpuFigures&) const = default;
};

// The steps of a GPU test that a node makes by itself, in their order.
enum class GpuStep { kOpen, kCompute, kGather };
const char* gpu_step_name(GpuStep step);  // "open", "compute", "gather"

// A step that failed, in a way that need not be the fault of a GPU: a call, a library, a probe that died or hung.
struct GpuFailure {
  GpuStep step = GpuStep::kOpen;
  std::string why = {};  // as a clause
  bool operator==(const GpuFailure&) const = default;
};

// What a node answers to the first phase, in which it looks at itself and opens a port for the tests that follow:
// {"port": 4000, "key": "9f0c...", "compute_ms": 3.1, "memory_gbps": 11.5, "findings": [{"severity": "warning",
// "what": "...", "where": "...", "remedy": "..."}]}, with "unfit": "why" where it cannot train, and "gpu": {"gpus": 8,
// "model": "...", "driver": "580.65.06", "cuda": "13.0", "nccl": "2.28.9", "nccl_path": "...", "cublaslt": "13.0.0",
// "cublaslt_path": "...", "nearest_ports": [{"gpu": "0000:1b:00.0", "distance": "PIX", "port": "mlx5_0 port 1"}]} and
// "gpu_figures": {"product_ms": 1.1, "tflops": 700, "memory_gbps": 2900, "host_to_device_gbps": 55,
// "device_to_host_gbps": 54, "node_ms": 1.2, "gathers": 8} where it has tested GPUs, and "gpu_failure": {"step":
// "compute", "why": "..."} where these did not do their part.
struct SelfResult {
  std::uint16_t port = 0;
  std::string key = {};                    // by which the probe at the port knows who has been told of it
  std::optional<double> compute_ms = {};   // of a matrix product
  std::optional<double> memory_gbps = {};  // 10^9 bytes/s, read and written
  std::vector<Finding> findings = {};
  std::string unfit = {};  // as a clause
  // With --check-probe: a free port, for the MASTER_PORT of the tests that it leads; 0: it makes the tests itself.
  std::uint16_t master_port = 0;
  std::optional<GpuVersions> gpu = {};
  std::optional<GpuFigures> gpu_figures = {};
  std::optional<GpuFailure> gpu_failure = {};  // the first; what is a GPU's own fault makes the node unfit
  bool operator==(const SelfResult&) const = default;
};

// One test that a node is to make.
struct PairOrder {
  int with = 0;                      // node rank; the lower of the two waits, the higher connects
  std::string name = {};             // for people
  std::vector<std::string> at = {};  // numeric addresses of the other
  std::uint16_t port = 0;
  std::string key = {};
  int after = 0;  // so many tests of this phase may come before it on either node
  // Of the other: SelfResult::master_port, and with it how many workers it has. Not said where there is no such port.
  std::uint16_t master_port = 0;
  int local_world_size = 1;
  int gpus = 0;  // of the other, with which ours are to gather after the exchange
  bool operator==(const PairOrder&) const = default;
};

// The tests that a node is to make, in order: {"rank": 2, "tests": [{"with": 3, "name": "node3", "at": ["10.0.0.4"],
// "port": 4000, "key": "9f0c...", "after": 1}]}.
struct PairOrders {
  int rank = 0;  // its own node rank
  std::vector<PairOrder> tests = {};
  bool operator==(const PairOrders&) const = default;
};

// Why the GPUs of two nodes did not gather.
struct GatherFailure {
  std::string why = {};    // as a clause; empty: the other node knows
  bool is_defect = false;  // of a GPU or of the way, whatever the libraries are like: wrong bytes
  bool operator==(const GatherFailure&) const = default;
};

// What came of one.
struct PairResult {
  int with = 0;
  std::optional<double> ms = {};          // of one exchange over TCP; none: it failed
  std::optional<double> latency_us = {};  // of a few bytes there and back, half of it
  std::optional<double> clock_ms = {};    // how far the other's wall clock is ahead of ours
  std::optional<double> gpu_ms = {};      // of an all-gather of all GPUs of both; none: there was none
  int gpu_ranks = 0;                      // how many these were
  std::int64_t gpu_bytes = 0;             // of each
  std::optional<double> gpu_latency_us = {};
  std::optional<GatherFailure> gpu_failure = {};  // none: they did, or were not to
  std::string why_not = {};
  bool operator==(const PairResult&) const = default;
};

// What a node answers to its orders: {"tests": [{"with": 3, "ms": 5.1, "latency_us": 40, "clock_ms": 0.3}]}, with
// "gpu_ms": 1.2, "gpu_ranks": 16, "gpu_bytes": 67108864, "gpu_latency_us": 20.1 where GPUs were tested, or
// "gpu_failed": "why" and perhaps "gpu_defect": true, or {"with": 3, "failed": "the connection is not answered"}; with
// "findings" as above, where there are new ones.
struct PairResults {
  std::vector<PairResult> tests = {};
  std::vector<Finding> findings = {};  // that it has not told before
  bool operator==(const PairResults&) const = default;
};

// A node's place in a ring of nodes, by rank: {"rank": 2, "ring": {"place": 1, "members": 3, "previous": {"with": 1,
// ...}, "next": {"with": 5, ...}}}, in which the neighbours are described as in PairOrders.
struct RingOrder {
  int rank = 0;     // its own node rank
  int place = 0;    // from 0
  int members = 2;  // at least
  PairOrder previous = {};
  PairOrder next = {};  // of two members the same node as `previous`
  bool operator==(const RingOrder&) const = default;
};

// What came of it: {"all_gather": {"ms": 21.5}}, or {"all_gather": {"failed": "node 1: it refused the connection",
// "for_others": false}}.
struct RingResult {
  std::optional<double> ms = {};  // of one all-gather, above 0; none: it failed
  std::string why_not = {};
  bool for_others = false;  // it failed since another node did not do its part, which says more of it
  bool operator==(const RingResult&) const = default;
};

// "note", "warning", "fatal". Nothing where the text is something else.
std::optional<Severity> read_severity(std::string_view text);

std::string text_of(const SelfResult& result);
std::string text_of(const PairOrders& orders);
std::string text_of(const PairResults& results);
std::string text_of(const RingOrder& order);
std::string text_of(const RingResult& result);
// Nothing where the text is something else.
std::optional<SelfResult> read_self_result(const std::string& text);
std::optional<PairOrders> read_pair_orders(const std::string& text);
std::optional<PairResults> read_pair_results(const std::string& text);
std::optional<RingOrder> read_ring_order(const std::string& text);
std::optional<RingResult> read_ring_result(const std::string& text);

}  // namespace elastic::health
