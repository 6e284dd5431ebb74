#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.h"
#include "tests/simulation/random.h"
#include "tests/simulation/timeline.h"

namespace elastic::simulation {

// One node as its user started it.
struct NodeShape {
  std::string job;
  std::string address;
  int workers = 1;
  std::optional<int> claim;
  bool hosts_coordinator = false;
  bool fit = true;    // as the check before training finds it
  bool slow = false;  // the same
  Ms starts_ms = 0;
  protocol::JobTerms terms;
  protocol::JobRules rules;
  protocol::CheckRules check;
  Ms shutdown_timeout_ms = 1000;
  Ms exit_barrier_ms = 10'000;
  Ms join_timeout_ms = 20'000;
  Ms rejoin_ms = 3'000;
  Ms clock_offset_ms = 0;
  int clock_error = 0;  // parts of 10,000
  bool logs = false;
  bool tells_crashes = false;
};

// Everything that a seed decides before the first event.
struct Shape {
  std::uint64_t seed = 1;
  std::vector<NodeShape> nodes = {};
  bool hosted = false;  // the coordinator's process is that of node 0
  Ms loss_timeout_ms = 5000;
  Ms longest_delay_ms = 3;
  bool steady = false;  // every way takes the longest delay
  Ms user_timeout_ms = 0;
  int check_phases = 0;
  Ms training_ms = 200;       // what the workers of a round take when nothing disturbs them, at least
  int stubborn_percent = 10;  // of workers: end by SIGKILL only
  int saving_percent = 20;    // save for a while when told to end
  bool guardian_speaks = true;
  int jobs = 1;
};

// `nodes` of 0: as many as the seed says.
Shape shape_of(std::uint64_t seed, int nodes = 0);
// A job without anything of note, to be disturbed by hand: so many nodes, all needed.
Shape plain_shape(std::uint64_t seed, int nodes);
// In words, for a person.
std::string text(const Shape& shape);

// A sum of all times that the job and its nodes may lose, one after another, when nothing disturbs them any more:
// until then a round runs or the job is over. shape.cpp says of what it is made.
Ms settling_bound_ms(const Shape& shape);

}  // namespace elastic::simulation
