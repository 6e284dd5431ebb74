#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "health/gpu/judge_gpu.h"
#include "health/gpu/kernel_xids.h"
#include "health/gpu/messages.h"
#include "health/messages/messages.h"
#include "health/probe/attempt.h"
#include "health/probe/gpu_probes.h"

// The GPUs of one node in a check: what each is by itself, what they are together, and the test with another node's.
namespace elastic::health {

struct GpuSettings {
  int gpus = 0;  // that the workers see; 0: none are tested
  int workers = 1;
  std::string program = {};  // --probe-path; empty: the one that lies in elastic-run
  LibraryCandidates libraries = {};
  std::vector<std::string> environment = {};
  std::string temporary = "/tmp";  // where the program may lie as a file
  // In which libraries must be loaded and GPUs taken: long, since a driver without persistence mode wakes them first.
  std::int64_t open_ms = 60'000;
  // For what NVML knows before the work: without persistence mode the driver starts all GPUs for it, one after the
  // other.
  std::int64_t first_facts_ms = 60'000;
  std::int64_t facts_ms = 10'000;            // and after it
  std::int64_t compute_ms = 60'000;          // for products and copies, and the libraries' way from a slow disk
  std::string root = {};                     // below which sysfs and the kernel log are looked for: "" but for tests
  std::int64_t began_us = 0;                 // when the job began on this node, CLOCK_MONOTONIC_RAW
  std::int64_t gather_ms = 60'000;           // for the all-gather of the node's own GPUs
  std::int64_t gather_bytes = kGatherBytes;  // of each GPU
};

// All that phase 0 may take for GPUs.
std::int64_t longest_look_ms(const GpuSettings& settings);

// What phase 0 has found.
struct GpuLook {
  std::string unavailable = {};            // why GPUs are not tested, as a clause; empty: they are
  std::string unfit = {};                  // why the node cannot train, as a clause: what is a GPU's own fault
  std::optional<GpuFailure> failure = {};  // the first step that failed otherwise
  std::optional<GpuVersions> versions = {};
  std::optional<GpuFigures> figures = {};
  std::vector<Finding> findings = {};
};

// Two nodes' all-gather.
struct GpuPairFigures {
  double ms = 0;  // the slower node's
  std::optional<double> latency_us = {};
  int ranks = 0;  // GPUs of both nodes
};

class OtherNode;

class GpuNode {
 public:
  explicit GpuNode(GpuSettings settings) : settings_(std::move(settings)), xids_(settings_.root, settings_.began_us) {}

  // To be called once, before anything else.
  GpuLook look();

  // What the kernel has said of the GPUs since they were looked at, or asked so last.
  std::vector<Finding> look_again();

  // The test with the node at the other end of `socket`, a stream of nobody else's, of which one leads; the other has
  // `others` GPUs, of the same NCCL. To be called where look() has told that ours can gather. Fails as soon as one GPU
  // of either node has failed: with an empty reason where it was the other node's, which knows why.
  std::expected<GpuPairFigures, GatherFailure> meet(int socket, bool leads, int others, const Deadline& deadline);

 private:
  using Answers = std::vector<Attempt<std::string>>;
  Answers ask_all(const std::string& line, const Deadline& deadline);
  // The rank of our first GPU in a communicator.
  struct Place {
    int first = 0;
    int world = 2;
  };
  // Until all have gathered, or one has failed, or `other` says that it has; null: there is no other node.
  std::expected<GpuGathered, GatherFailure> gather(const std::string& id, Place place, const Deadline& deadline,
                                                   OtherNode* other);
  std::expected<std::string, GatherFailure> make_id(const Deadline& deadline);
  // Starts those probes again that were ended in an earlier test.
  std::expected<void, GatherFailure> revive(const Deadline& deadline);
  bool start(GpuLook& out);
  bool open(GpuLook& out);
  // What NVML knows before the work. After it all probes run.
  GpuReply<std::vector<GpuFacts>> first_facts();
  // What NVML knows now, by the first probe that answers.
  GpuReply<std::vector<GpuFacts>> ask_facts(const Deadline& deadline);
  void judge_facts(const GpuReply<std::vector<GpuFacts>>& before, GpuLook& out);
  void judge_distances_of(const std::vector<GpuIdentity>& gpus, GpuLook& out);
  void compute(GpuLook& out);
  void gather_alone(GpuLook& out);

  GpuSettings settings_;
  std::optional<ProbeImage> image_;
  std::optional<GpuProbes> probes_;                     // none: GPUs are not tested
  std::vector<GpuOpened> opened_;                       // by GPU
  std::vector<std::optional<GpuIdentity>> identities_;  // by GPU; none of one that could not be opened
  int nccl_version_ = 0;                                // 0: NCCL is not there
  std::optional<GpuNeeds> needs_;                       // none: GPUs are not judged
  KernelXids xids_;
  std::set<std::tuple<Severity, std::string, std::string>> told_xids_;  // where, "Xid 79"
};

}  // namespace elastic::health
