#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "health/hang/hang_facts.h"
#include "src/base/fields.h"

// A node's evidence is read in parts, each by a process of its own: what they are asked and answer.
namespace elastic::hang {

enum class Part : std::uint8_t {
  kProcesses,     // /proc of the workers
  kRecorder,      // PyTorch's flight recorder
  kRas,           // NCCL RAS
  kGpus,          // the driver of GPUs, and the kernel's log
  kLinks,         // the ports of InfiniBand and RoCE
  kStoreClients,  // which rank has which connection to the worker store
  kDumps,         // the dumps of flight recorders that were asked for by the worker store
};
constexpr auto names_of(Part) {
  return std::array{"processes", "recorder", "ras", "gpus", "links", "store clients", "dumps"};
}

// | a part of a node's evidence: the lines that it says to people; processes that one worker has started |
// {kMostLines}; {kMostChildren} | the rest is left out |
inline constexpr std::size_t kMostLines = 8192;
inline constexpr std::size_t kMostChildren = 64;
// | clients of the worker store whose ranks are looked for | {kMostStoreClients} | it is not known which ranks the
// others are |
inline constexpr std::size_t kMostStoreClients = 8192;

struct EvidenceTask {
  struct Worker {
    std::int32_t rank = 0;
    std::int32_t local_rank = 0;
    std::int64_t pid = 0;
    std::vector<std::int64_t> children = {};
    bool operator==(const Worker&) const = default;
    static void fields(auto& io, auto& v) {
      each(io, "rank", v.rank, "local_rank", v.local_rank, "pid", v.pid);
      io("children", v.children, at_most(kMostChildren));
    }
  };
  Part part = Part::kProcesses;
  std::int32_t world_size = 0;
  std::vector<Worker> workers = {};
  std::vector<std::string> addresses = {};  // of this host, numeric
  std::int64_t round_began_us = 0;          // CLOCK_MONOTONIC_RAW
  std::string gpu_program = {};             // empty: elastic-run's own
  std::string temporary = {};
  std::vector<std::string> peers = {};  // clients of the worker store, as it sees them: "127.0.0.1:40312"
  bool ras_is_ours = false;             // NCCL_RAS_ADDR was set by elastic-run: it says nothing of whether NCCL is used
  std::int64_t least_ms = 0;            // of Part::kDumps: it takes no less time
  bool operator==(const EvidenceTask&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "part", v.part, "world_size", v.world_size);
    io("workers", v.workers, at_most(bounds::kRanks));
    each(io, "addresses", v.addresses, "round_began_us", v.round_began_us);
    each(io, "gpu_program", v.gpu_program, "temporary", v.temporary);
    io("peers", v.peers, at_most(kMostStoreClients));
    each(io, "ras_is_ours", v.ras_is_ours, "least_ms", v.least_ms);
  }
};

// A client of the worker store that is a worker of this node.
struct StoreClient {
  std::string peer = {};
  std::int32_t rank = 0;
  bool operator==(const StoreClient&) const = default;
  static void fields(auto& io, auto& v) { each(io, "peer", v.peer, "rank", v.rank); }
};

struct EvidenceAnswer {
  NodeFacts facts = {};                   // what this part says of them
  std::vector<std::string> lines = {};    // the same and more, for people
  std::vector<StoreClient> clients = {};  // of Part::kStoreClients
  bool operator==(const EvidenceAnswer&) const = default;
  static void fields(auto& io, auto& v) {
    io("facts", v.facts);
    io("lines", v.lines, at_most(kMostLines));
    io("clients", v.clients, at_most(kMostStoreClients));
  }
};

// Adds to a node's facts what a part says of them. Ranks that are not in the facts are added.
void add_part(NodeFacts& facts, Part part, const NodeFacts& said);
// The same where a part has said nothing, and why.
void add_missing(NodeFacts& facts, Part part, const SourceFacts& source);

}  // namespace elastic::hang
