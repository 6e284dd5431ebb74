#pragma once

#include <cstdint>
#include <string>

namespace elastic::election {

// What a run of the model has seen.
struct Seen {
  int elections = 0;           // candidates that became the coordinator
  int by_witnessed_death = 0;  // of these
  int rounds = 0;              // rounds whose workers were started
  int kept_for_ever = 0;       // votes of members that died before the vote had ended
  int resignations = 0;
  std::int64_t acting_ms = 0;  // for how long some coordinator had authority
  std::int64_t total_ms = 0;
  std::string broken = {};  // the rule that was broken; empty: none
};

// Called with one line for each thing that happens.
using Trace = void (*)(const std::string& line);

// Runs two to seven nodes, and their coordinators and candidates, with the classes of rendezvous/election: messages
// with delays, clocks that differ by up to 1 %, cuts, pauses, silent and proven deaths, returns, elections, rounds. The
// seed decides everything. At each step at most one coordinator may have authority, the workers of at most one round
// may live, and no lease may outlast the authority of the coordinator that granted it.
Seen run_model(std::uint64_t seed, Trace trace = nullptr);

}  // namespace elastic::election
