#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "health/hang/hang_facts.h"
#include "tests/simulation/random.h"
#include "tests/simulation/timeline.h"

namespace elastic::simulation {

// How a round hangs. In the first six kinds one rank, or its node, is at fault; in the others nobody is.
enum class HangKind : std::uint8_t {
  kElsewhere,  // a rank has not come to the collective, as its stack shows
  kBehind,     // the same, as the flight recorders show
  kStopped,    // a rank's process is stopped
  kDisk,       // a rank waits for a disk of its own
  kXid,        // a GPU of its node has failed; all ranks wait in a collective
  kNotAtInit,  // a rank has not come to init_process_group
  kStorage,    // two ranks save, and their storage stands
  kFabric,     // all ranks have launched the same
  kMismatch,   // every other rank is in another collective
  kHalves,     // every other rank is in no collective
};
inline constexpr int kHangKinds = 10;
std::string name(HangKind kind);
bool has_culprit(HangKind kind);

// A round that hangs, or did.
struct Hang {
  HangKind kind = HangKind::kElsewhere;
  std::int32_t rank = 0;  // the rank at fault
  int node = 0;           // of that rank, below its address
  std::string address = {};
  std::int32_t world_size = 0;
  Ms began_ms = 0;
  bool until_told = true;  // it ends after it was told; else at a time of its own
  bool is_ending = false;
  std::optional<Ms> ended_ms = {};
  bool is_now() const { return !ended_ms; }
};

// Whether the rank at fault computes, as in a long step.
bool computes(const Hang& hang);
// Whether the whole evidence of all nodes names the one at fault, `for_ms` after the hang began.
bool must_be_named(const Hang& hang, Ms for_ms);

// What a node reads of these ranks of its own, of which none has ended.
struct Reader {
  std::int32_t first_rank = 0;
  std::int32_t ranks = 0;
};
// The facts of a round that hangs.
hang::NodeFacts facts_of(const Hang& hang, const Reader& reader, Ms now_ms);
// The facts of a round whose ranks wait for a host that is frozen or cut off.
hang::NodeFacts facts_of_waiting(const Reader& reader);
// The facts of a round that trains: each rank is at another place than 2 s before.
hang::NodeFacts facts_of_training(const Reader& reader, Random& random);
// Some of the facts are lost.
void lose_part(hang::NodeFacts& facts, Random& random);

}  // namespace elastic::simulation
