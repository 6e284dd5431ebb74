#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/simulation/coverage.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/invariants.h"
#include "tests/simulation/world.h"

namespace elastic::simulation {

// One world from its seed; `plan` in place of the seed's own. `reader` may be null.
WorldOutcome run_world(std::uint64_t seed, Coverage& coverage, std::ostream* reader,
                       const std::optional<FaultPlan>& plan = {});

// What its coordinators were told, in the order in which they began.
std::vector<Recording> record_world(std::uint64_t seed);

struct FailedSeed {
  std::uint64_t seed = 0;
  std::string what;
  std::string text;
};

// Many worlds.
struct Totals {
  Coverage coverage;
  std::uint64_t hash = 0;  // of all hashes, in whatever order
  std::uint64_t next_seed = 0;
  std::uint64_t recordings = 0;  // held to what their coordinators did, and their events
  std::uint64_t events = 0;
  std::vector<FailedSeed> failed;  // the lowest first
};

// When to stop: whatever comes first. Zero: not asked for.
struct Wanted {
  std::uint64_t from = 1;
  std::uint64_t worlds = 0;
  std::uint64_t faulty_rounds = 0;
  std::int64_t seconds = 0;
  bool first_failure = true;
  bool replay = false;  // each coordinator is recorded, and the recording held to what it did
};

// Runs worlds of consecutive seeds in `jobs` processes. What is found does not depend on `jobs`, and is the same each
// time where no seconds are wanted.
Totals run_worlds(const Wanted& wanted, int jobs, std::ostream* progress);

// The fewest faults of a seed's plan with which it still fails for the same reason, and what it then says; nothing,
// if it does not fail.
struct Shrunk {
  FaultPlan plan;
  Broken broken;
  int tries = 0;
};
std::optional<Shrunk> shrink(std::uint64_t seed);

}  // namespace elastic::simulation
