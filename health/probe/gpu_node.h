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

// The test of one node's GPUs: each GPU by itself, all of them together, and with another node's GPUs.
namespace elastic::health {

struct GpuSettings {
  int gpus = 0;  // how many are tested, of those that the workers see
  int workers = 1;
  std::string program = {};  // --probe-path; empty: the one that is contained in elastic-run
  LibraryCandidates libraries = {};
  std::vector<std::string> environment = {};
  std::string temporary = "/tmp";  // the directory for the program where it cannot be executed from memory
  // The time to load the libraries and open the GPUs. It is long, since without persistence mode the driver initializes
  // the GPUs first.
  std::int64_t open_ms = 60'000;
  // The time to ask NVML before the test: without persistence mode the driver initializes all GPUs for it, one after
  // the other.
  std::int64_t first_facts_ms = 60'000;
  std::int64_t facts_ms = 10'000;    // the time to ask NVML after the test
  std::int64_t compute_ms = 60'000;  // the time for products and copies, and to load the libraries from a slow disk
  std::string root = {};             // sysfs and the kernel log are read below it; "" except in tests
  std::int64_t began_us = 0;         // when the job began on this node, CLOCK_MONOTONIC_RAW
  std::int64_t gather_ms = 60'000;   // the time for an all-gather
  std::int64_t gather_bytes = kGatherBytes;  // the size of each GPU's block
};

// The longest time that the GPUs' part of kSelfPhase may take.
std::int64_t longest_look_ms(const GpuSettings& settings);

// The GPUs' part of the results of kSelfPhase.
struct GpuLook {
  std::string unavailable = {};            // why GPUs are not tested, as a clause; empty: they are tested
  std::string unhealthy = {};              // a GPU's own fault, for which the node cannot train, as a clause
  std::optional<GpuFailure> failure = {};  // the first step that failed without showing that a GPU is at fault
  std::optional<GpuVersions> versions = {};
  std::optional<GpuFigures> figures = {};
  std::vector<Finding> findings = {};
};

// The all-gather of two nodes' GPUs.
struct GpuPairFigures {
  double ms = 0;  // the slower node's time
  std::optional<double> latency_us = {};
  int ranks = 0;  // GPUs of both nodes
};

class OtherNode;

class GpuNode {
 public:
  explicit GpuNode(GpuSettings settings) : settings_(std::move(settings)), xids_(settings_.root, settings_.began_us) {}

  // The tests of kSelfPhase. Must be called once, before anything else.
  GpuLook run_self_tests();

  // Findings by Xids that the kernel has logged since run_self_tests() or the last call.
  std::vector<Finding> look_again();

  // The all-gather with the GPUs of the node at the other end of `socket`, a stream socket that is used for nothing
  // else. One of the two nodes leads. The other node has `others` GPUs and the same NCCL. Only called if
  // GpuFigures::gathers is above 0. Fails as soon as one GPU of either node has failed; with an empty reason where it
  // was the other node's, since that node knows why.
  std::expected<GpuPairFigures, GatherFailure> meet(int socket, bool leads, int others, const Deadline& deadline);

 private:
  using Answers = std::vector<Attempt<std::string>>;
  Answers ask_all(const std::string& line, const Deadline& deadline);
  // The rank of our first GPU in a communicator.
  struct Place {
    int first = 0;
    int world = 2;
  };
  // Runs until all GPUs have gathered, one has failed, or `other` has told that one failed; null: there is no other
  // node.
  std::expected<GpuGathered, GatherFailure> gather(const std::string& id, Place place, const Deadline& deadline,
                                                   OtherNode* other);
  std::expected<std::string, GatherFailure> make_id(const Deadline& deadline);
  // Starts the probes again that were killed in an earlier test.
  std::expected<void, GatherFailure> revive(const Deadline& deadline);
  bool start(GpuLook& out);
  bool open(GpuLook& out);
  // Asks NVML before the test. All probes are running afterwards.
  GpuReply<std::vector<GpuFacts>> first_facts();
  // Asks NVML now, by the first probe that replies.
  GpuReply<std::vector<GpuFacts>> ask_facts(const Deadline& deadline);
  void judge_facts(const GpuReply<std::vector<GpuFacts>>& before, GpuLook& out);
  void judge_distances_of(const std::vector<GpuIdentity>& gpus, GpuLook& out);
  void compute(GpuLook& out);
  void gather_alone(GpuLook& out);

  GpuSettings settings_;
  std::optional<ProbeImage> image_;
  std::optional<GpuProbes> probes_;                     // none: GPUs are not tested
  std::vector<GpuOpened> opened_;                       // by GPU
  std::vector<std::optional<GpuIdentity>> identities_;  // by GPU; nothing for one that could not be opened
  int nccl_version_ = 0;                                // 0: there is no NCCL
  std::optional<GpuNeeds> needs_;                       // none: GPUs are not judged
  KernelXids xids_;
  std::set<std::tuple<Severity, std::string, std::string>> told_xids_;  // severity, GPU, "Xid 79"
};

}  // namespace elastic::health
