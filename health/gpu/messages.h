#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

// What is asked of the probe of one GPU, and what it answers: JSON, each line an object, one answer to each request, in
// order. The probe is another program: what it writes is bounded, and never trusted.
namespace elastic::health {

// Of a line, its line end included. A longer one cannot be read.
inline constexpr std::size_t kProbeLineBytes = 64 * 1024;
// Of a text in an answer; of a longer one the rest is cut off.
inline constexpr std::size_t kProbeTextBytes = 1000;
// Of one kind of thing in an answer (devices, links of a device, holders of its memory); more are left out.
inline constexpr std::size_t kProbeMostOfAKind = 64;

// --- Requests

// For dlopen(), to be tried in order.
struct LibraryCandidates {
  std::vector<std::string> cuda = {};
  std::vector<std::string> nccl = {};
  std::vector<std::string> cublaslt = {};
  std::vector<std::string> nvml = {};
  bool operator==(const LibraryCandidates&) const = default;
};

// Loads the libraries and takes the GPU: {"do": "open", "device": 0, "cuda": ["libcuda.so.1"], "nccl": [...],
// "cublaslt": [...], "nvml": [...]}.
struct GpuOpen {
  int device = 0;  // as CUDA_VISIBLE_DEVICES has them
  LibraryCandidates libraries = {};
};

// {"do": "compute"}: a product whose result is compared, and copies of memory.
struct GpuCompute {};

// {"do": "id"}: a unique id for a communicator of NCCL.
struct GpuMakeId {};

// An all-gather over NCCL: {"do": "gather", "id": "...", "rank": 0, "world": 2, "bytes": 67108864, "deadline_ms":
// 30000}.
struct GpuGather {
  std::string id = {};  // as a probe has answered it
  int rank = 0;
  int world = 2;
  std::int64_t bytes = 0;  // of each rank
  std::int64_t deadline_ms = 0;
};

// {"do": "facts", "nvml": [...]}: what NVML knows of the devices. Takes nothing of any GPU, and may come before "open".
struct GpuAskFacts {
  std::vector<std::string> nvml = {};  // for dlopen(), to be tried in order
};

// One line, without its line end.
std::string text_of(const GpuOpen& request);
std::string text_of(const GpuCompute& request);
std::string text_of(const GpuMakeId& request);
std::string text_of(const GpuGather& request);
std::string text_of(const GpuAskFacts& request);

// --- Answers

// Why there is no answer to a request.
struct Refusal {
  enum class Kind : unsigned char {
    kUnavailable,  // {"unavailable": "why"}: it cannot be tested here; nothing is wrong with the node
    kFailed,       // {"failed": "why"}: the GPU or a library is there, and did not do its part
    kDefect,       // {"failed": "why", "defect": true}: the GPU itself is at fault, whatever the libraries are like
  };
  Kind kind = Kind::kFailed;
  std::string why = {};  // a clause, never empty
  bool operator==(const Refusal&) const = default;
};

// An answer has exactly one of "ok": true, "unavailable" and "failed".
template <class Value>
using GpuReply = std::expected<Value, Refusal>;

struct GpuLibrary {
  std::string path = {};
  int version = 0;  // as the library says it
  bool operator==(const GpuLibrary&) const = default;
};

// {"ok": true, "name": "NVIDIA H100 80GB HBM3", "uuid": "GPU-...", "bus_id": "0000:1b:00.0", "memory_bytes": N,
// "driver_version": "580.65.06", "cuda_version": 13000, "nccl": {"path": "...", "version": 22809}, "cublaslt": null,
// "cublaslt_why": "..."}
struct GpuOpened {
  std::string name = {};
  std::string uuid = {};
  std::string bus_id = {};
  std::uint64_t memory_bytes = 0;
  std::string driver_version = {};
  int cuda_version = 0;  // that the driver can: 1000 * major + 10 * minor; 0: not known
  std::optional<GpuLibrary> nccl = {};
  std::string nccl_why = {};  // why there is none
  std::optional<GpuLibrary> cublaslt = {};
  std::string cublaslt_why = {};
  bool operator==(const GpuOpened&) const = default;
};

// {"ok": true, "product_ms": 1.1, "tflops": 700.1, "memory_gbps": 2900.0, "host_to_device_gbps": 55.0,
// "device_to_host_gbps": 54.0}; what could not be measured is null, "compute_why" says why.
struct GpuComputed {
  std::optional<double> product_ms = {};
  std::optional<double> tflops = {};
  std::optional<double> memory_gbps = {};  // 10^9 bytes/s, read and written
  std::optional<double> host_to_device_gbps = {};
  std::optional<double> device_to_host_gbps = {};
  std::string compute_why = {};
  bool operator==(const GpuComputed&) const = default;
};

// {"ok": true, "id": "<256 hex digits>"}
struct GpuId {
  std::string id = {};  // 256 lower-case hex digits
  bool operator==(const GpuId&) const = default;
};

// {"ok": true, "init_ms": 350.0, "first_ms": 130.0, "ms": 1.2, "latency_us": 20.0}
struct GpuGathered {
  std::optional<double> init_ms = {};   // of the communicator
  std::optional<double> first_ms = {};  // the first all-gather, which does not count
  double ms = 0;                        // the middle one of the others
  std::optional<double> latency_us = {};
  bool operator==(const GpuGathered&) const = default;
};

// A process that has memory of a GPU.
struct GpuHolder {
  std::int64_t pid = 0;  // as the host counts; 0: not known
  std::optional<std::uint64_t> bytes = {};
  std::string name = {};
  bool operator==(const GpuHolder&) const = default;
};

struct Nvlink {
  int link = 0;
  std::optional<bool> up = {};
  std::optional<std::uint64_t> errors = {};  // since the driver was loaded
  bool operator==(const Nvlink&) const = default;
};

// What NVML knows of a device at one moment. What is not known is not there.
struct GpuFacts {
  int index = 0;
  std::string uuid = {};
  std::string bus_id = {};
  std::string name = {};  // of the model
  std::string driver_version = {};
  std::optional<bool> lost = {};  // it does not answer its driver any more
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
  std::optional<std::uint64_t> throttle_reasons = {};  // NVML's bits, nvmlClocksEventReason...
  std::optional<bool> persistence = {};
  std::optional<bool> mig = {};
  std::optional<int> fabric_state = {};   // NVML's number, NVML_GPU_FABRIC_STATE_...
  std::optional<int> fabric_status = {};  // an nvmlReturn_t
  std::optional<int> temperature_c = {};
  bool operator==(const GpuFacts&) const = default;
};

// Nothing where the text is no such answer; what is not known of it is left out.
std::optional<GpuReply<GpuOpened>> read_gpu_opened(const std::string& text);
std::optional<GpuReply<GpuComputed>> read_gpu_computed(const std::string& text);
std::optional<GpuReply<GpuId>> read_gpu_id(const std::string& text);
std::optional<GpuReply<GpuGathered>> read_gpu_gathered(const std::string& text);
// {"ok": true, "devices": [{"index": 0, ...}]}, the members named as those of GpuFacts.
std::optional<GpuReply<std::vector<GpuFacts>>> read_gpu_facts(const std::string& text);

// "2.28.9" of 22809, "2.8.4" of 2804 (before 2.9), as NCCL numbers itself; "" of what is no version.
std::string nccl_version_text(int version);
// "13.0.0" of 130000, "11.4.1" of 11401 (before 12), as cuBLASLt numbers itself; "" of what is no version.
std::string cublaslt_version_text(int version);
// "13.0" of 13000, as CUDA numbers itself; "" of what is no version.
std::string cuda_version_text(int version);

}  // namespace elastic::health
