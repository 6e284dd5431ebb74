#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "src/base/fields.h"

// The requests to the probe of one GPU, and its replies (docs/gpu-probe.md): a request is a line of NAME=VALUE, a reply
// a JSON object on a line, and there is one reply to each request, in order. The probe is another program, so its
// replies are bounded and not trusted.
namespace elastic::health {

// The longest line, with its line end. A longer reply cannot be read.
inline constexpr std::size_t kProbeLineBytes = 64 * 1024;
// The most bytes that are kept of a text in a reply.
inline constexpr std::size_t kProbeTextBytes = 1000;
// The most elements that are read of a list in a reply (devices, a device's links, processes with its memory).
inline constexpr std::size_t kProbeMostOfAKind = 64;

// --- Requests

// Names and paths for dlopen(), in the order in which they are tried.
struct LibraryCandidates {
  std::vector<std::string> cuda = {};
  std::vector<std::string> nccl = {};
  std::vector<std::string> cublaslt = {};
  std::vector<std::string> nvml = {};
  bool operator==(const LibraryCandidates&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "cuda", v.cuda, "nccl", v.nccl, "cublaslt", v.cublaslt, "nvml", v.nvml);
  }
};

// Loads the libraries and opens the GPU.
struct GpuOpen {
  static constexpr const char* kDo = "open";
  int device = 0;  // an index into the visible devices
  LibraryCandidates libraries = {};
  static void fields(auto& io, auto& v) {
    io("device", v.device);
    LibraryCandidates::fields(io, v.libraries);
  }
};

// A matrix product whose result is verified, and copies of memory.
struct GpuCompute {
  static constexpr const char* kDo = "compute";
  static void fields(auto&, auto&) {}
};

// Makes a unique id for an NCCL communicator.
struct GpuMakeId {
  static constexpr const char* kDo = "id";
  static void fields(auto&, auto&) {}
};

// An all-gather over NCCL.
struct GpuGather {
  static constexpr const char* kDo = "gather";
  std::string id = {};  // GpuId::id of the probe with rank 0
  int rank = 0;
  int world = 2;
  std::int64_t bytes = 0;  // the size of each rank's block
  std::int64_t deadline_ms = 0;
  static void fields(auto& io, auto& v) {
    each(io, "id", v.id, "rank", v.rank, "world", v.world, "bytes", v.bytes, "deadline_ms", v.deadline_ms);
  }
};

// Asks NVML about all devices. Uses no memory of a GPU, and may come before GpuOpen.
struct GpuAskFacts {
  static constexpr const char* kDo = "facts";
  std::vector<std::string> nvml = {};  // names and paths for dlopen(), in the order in which they are tried
  static void fields(auto& io, auto& v) { io("nvml", v.nvml); }
};

// Each returns one line, without its line end.
std::string text_of(const GpuOpen& request);
std::string text_of(const GpuCompute& request);
std::string text_of(const GpuMakeId& request);
std::string text_of(const GpuGather& request);
std::string text_of(const GpuAskFacts& request);

// --- Replies

// Why a request was not carried out.
struct Refusal {
  enum class Kind : unsigned char {
    kUnavailable,  // {"unavailable": "why"}: it cannot be tested here; nothing is wrong with the node
    kFailed,       // {"failed": "why"}: the GPU and the libraries are there, and something failed
    kDefect,       // {"failed": "why", "defect": true}: the GPU itself is at fault, not a library
  };
  Kind kind = Kind::kFailed;
  std::string why = {};  // a clause, never empty
  bool operator==(const Refusal&) const = default;
};

// A reply has exactly one of "ok": true, "unavailable" and "failed".
template <class Value>
using GpuReply = std::expected<Value, Refusal>;

struct GpuLibrary {
  std::string path = {};
  int version = 0;  // the library's own number
  bool operator==(const GpuLibrary&) const = default;
  static void fields(auto& io, auto& v) { each(io, "path", v.path, "version", v.version); }
};

struct GpuOpened {
  std::string name = {};
  std::string uuid = {};
  std::string bus_id = {};
  std::uint64_t memory_bytes = 0;
  std::string driver_version = {};
  int cuda_version = 0;  // the newest that the driver supports: 1000 * major + 10 * minor; 0: not known
  std::optional<GpuLibrary> nccl = {};
  std::string nccl_why = {};  // why there is no NCCL
  std::optional<GpuLibrary> cublaslt = {};
  std::string cublaslt_why = {};
  bool operator==(const GpuOpened&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "name", v.name, "uuid", v.uuid, "bus_id", v.bus_id, "memory_bytes", v.memory_bytes);
    each(io, "driver_version", v.driver_version, "cuda_version", v.cuda_version, "nccl", v.nccl);
    each(io, "nccl_why", v.nccl_why, "cublaslt", v.cublaslt, "cublaslt_why", v.cublaslt_why);
  }
};

// A figure that could not be measured is null, and `compute_why` has the reason.
struct GpuComputed {
  std::optional<double> product_ms = {};
  std::optional<double> tflops = {};
  std::optional<double> memory_gbps = {};  // 10^9 bytes/s, read and written
  std::optional<double> host_to_device_gbps = {};
  std::optional<double> device_to_host_gbps = {};
  std::string compute_why = {};
  bool operator==(const GpuComputed&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "product_ms", v.product_ms, "tflops", v.tflops, "memory_gbps", v.memory_gbps);
    each(io, "host_to_device_gbps", v.host_to_device_gbps, "device_to_host_gbps", v.device_to_host_gbps);
    io("compute_why", v.compute_why);
  }
};

struct GpuId {
  std::string id = {};  // 256 lower-case hex digits
  bool operator==(const GpuId&) const = default;
};

struct GpuGathered {
  std::optional<double> init_ms = {};   // the time to make the communicator
  std::optional<double> first_ms = {};  // the time of the first all-gather, a warm-up
  double ms = 0;                        // the median time of the others
  std::optional<double> latency_us = {};
  bool operator==(const GpuGathered&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "init_ms", v.init_ms, "first_ms", v.first_ms);
    io.must("ms", v.ms);
    io("latency_us", v.latency_us);
  }
};

// A process that uses memory of a GPU.
struct GpuHolder {
  std::int64_t pid = 0;  // in the host's pid namespace; 0: not known
  std::optional<std::uint64_t> bytes = {};
  std::string name = {};
  bool operator==(const GpuHolder&) const = default;
  static void fields(auto& io, auto& v) {
    io("pid", v.pid, at_most(INT32_MAX));
    each(io, "bytes", v.bytes, "name", v.name);
  }
};

struct Nvlink {
  int link = 0;
  std::optional<bool> up = {};
  std::optional<std::uint64_t> errors = {};  // since the driver was loaded
  bool operator==(const Nvlink&) const = default;
  static void fields(auto& io, auto& v) { each(io, "link", v.link, "up", v.up, "errors", v.errors); }
};

// What NVML knows about a device at one moment. An optional without a value, or an empty text, is not known.
struct GpuFacts {
  int index = 0;
  std::string uuid = {};
  std::string bus_id = {};
  std::string name = {};  // the model
  std::string driver_version = {};
  std::optional<bool> lost = {};  // the driver cannot reach it any more
  std::optional<bool> needs_reset = {};
  std::optional<std::uint64_t> ecc_uncorrectable = {};  // errors since the last reset
  std::optional<bool> remap_pending = {};
  std::optional<bool> remap_failed = {};
  std::optional<std::uint64_t> memory_used_bytes = {};
  std::optional<std::uint64_t> memory_bytes = {};
  std::vector<GpuHolder> holders = {};
  std::optional<int> pcie_width = {};  // lanes
  std::optional<int> pcie_max_width = {};
  std::optional<int> pcie_gen = {};
  std::optional<int> pcie_max_gen = {};
  std::vector<Nvlink> nvlinks = {};
  std::optional<std::uint64_t> throttle_reasons = {};  // a bit mask of nvmlClocksEventReason...
  std::optional<bool> persistence = {};
  std::optional<bool> mig = {};
  std::optional<int> fabric_state = {};   // NVML_GPU_FABRIC_STATE_...
  std::optional<int> fabric_status = {};  // an nvmlReturn_t
  std::optional<int> temperature_c = {};
  std::optional<std::uint64_t> power_mw = {};   // of the whole board
  std::optional<int> busy_percent = {};         // of the time: a kernel ran, and be it one that waits
  std::optional<int> memory_busy_percent = {};  // of the time: its memory was read or written
  bool operator==(const GpuFacts&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "index", v.index, "uuid", v.uuid, "bus_id", v.bus_id, "name", v.name, "driver_version", v.driver_version);
    each(io, "lost", v.lost, "needs_reset", v.needs_reset, "ecc_uncorrectable", v.ecc_uncorrectable);
    each(io, "remap_pending", v.remap_pending, "remap_failed", v.remap_failed);
    each(io, "memory_used_bytes", v.memory_used_bytes, "memory_bytes", v.memory_bytes);
    io("holders", v.holders, at_most(kProbeMostOfAKind));
    each(io, "pcie_width", v.pcie_width, "pcie_max_width", v.pcie_max_width, "pcie_gen", v.pcie_gen);
    io("pcie_max_gen", v.pcie_max_gen);
    io("nvlinks", v.nvlinks, at_most(kProbeMostOfAKind));
    each(io, "throttle_reasons", v.throttle_reasons, "persistence", v.persistence, "mig", v.mig);
    each(io, "fabric_state", v.fabric_state, "fabric_status", v.fabric_status, "temperature_c", v.temperature_c);
    each(io, "power_mw", v.power_mw, "busy_percent", v.busy_percent, "memory_busy_percent", v.memory_busy_percent);
  }
};

// Each returns nothing where the text is not such a reply. Members that cannot be read count as not known.
std::optional<GpuReply<GpuOpened>> read_gpu_opened(const std::string& text);
std::optional<GpuReply<GpuComputed>> read_gpu_computed(const std::string& text);
std::optional<GpuReply<GpuId>> read_gpu_id(const std::string& text);
std::optional<GpuReply<GpuGathered>> read_gpu_gathered(const std::string& text);
// {"ok": true, "devices": [{"index": 0, ...}]}, the members named as those of GpuFacts.
std::optional<GpuReply<std::vector<GpuFacts>>> read_gpu_facts(const std::string& text);

// NCCL's number as text: "2.28.9" for 22809, "2.8.4" for 2804 (before 2.9); "" for 0 and below.
std::string nccl_version_text(int version);
// cuBLASLt's number as text: "13.0.0" for 130000, "11.4.1" for 11401 (before 12); "" for 0 and below.
std::string cublaslt_version_text(int version);
// CUDA's number as text: "13.0" for 13000; "" for 0 and below.
std::string cuda_version_text(int version);

}  // namespace elastic::health
