#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/simulation/coverage.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/invariants.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

// Simulates a seed, with `plan` instead of the seed's own plan if it is given. `reader` may be null.
SimulationOutcome run_seed(std::uint64_t seed, Coverage& coverage, std::ostream* reader,
                           const std::optional<FaultPlan>& plan = {});

// The recordings of a seed's coordinators, in the order in which they began.
std::vector<Recording> record_seed(std::uint64_t seed);

struct FailedSeed {
  std::uint64_t seed = 0;
  std::string what;
  std::string text;
};

struct Totals {
  Coverage coverage;
  std::uint64_t hash = 0;  // of the hashes of all seeds; it does not depend on their order
  std::uint64_t next_seed = 0;
  std::uint64_t recordings = 0;  // how many were replayed; below, how many events they had
  std::uint64_t events = 0;
  std::vector<FailedSeed> failed;  // the lowest first
};

// When to stop, whichever comes first. Zero means that there is no such limit.
struct Wanted {
  std::uint64_t from = 1;
  std::uint64_t seeds = 0;
  std::uint64_t faulty_rounds = 0;
  std::int64_t seconds = 0;
  bool first_failure = true;
  bool replay = false;  // each coordinator is recorded, and its recording is replayed and compared
};

// Simulates consecutive seeds in `jobs` processes. The result does not depend on `jobs`, and is the same each time
// unless a number of seconds is wanted.
Totals run_seeds(const Wanted& wanted, int jobs, std::ostream* progress);

// The fewest faults of a seed's plan with which it still fails for the same reason, and that failure; none if the seed
// does not fail.
struct Shrunk {
  FaultPlan plan;
  Broken broken;
  int tries = 0;
};
std::optional<Shrunk> shrink(std::uint64_t seed);

}  // namespace elastic::simulation
