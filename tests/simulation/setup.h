#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.h"
#include "tests/simulation/hang_evidence.h"
#include "tests/simulation/random.h"
#include "tests/simulation/timeline.h"

namespace elastic::simulation {

// One node as its user started it.
struct NodeSetup {
  std::string job;
  std::string address;
  int workers = 1;
  std::optional<int> claimed_rank;
  bool hosts_coordinator = false;
  bool fit = true;    // the check before training finds it healthy
  bool slow = false;  // the check before training finds it slow
  Ms starts_ms = 0;
  protocol::JobTerms terms;
  protocol::JobRules rules;
  health::CheckRules check;
  Ms shutdown_timeout_ms = 1000;
  Ms exit_barrier_ms = 10'000;
  Ms join_timeout_ms = 20'000;
  Ms rejoin_ms = 3'000;
  Ms clock_offset_ms = 0;
  int clock_error = 0;  // in parts of 10,000
  bool logs = false;
  bool tells_crashes = false;
};

// Rounds that show progress, and hang at times.
struct HangSetup {
  Ms beat_ms = 300;                   // from one sign of progress to the next
  bool all_speak = false;             // all nodes show it, and not that of rank 0 alone
  int percent = 60;                   // of the rounds hang
  std::optional<HangKind> kind = {};  // of all hangs; not set: it is drawn for each
  bool all_last = false;              // until they are told; else some end by themselves
  int partial_percent = 30;           // of the nodes read only a part of the evidence
  int late_percent = 20;              // of them are slow, many of them too slow
  int never_percent = 5;              // of them never come to an end
};

// Everything that a seed decides before the first event.
struct Setup {
  std::uint64_t seed = 1;
  std::vector<NodeSetup> nodes = {};
  bool hosted = false;  // the coordinator's process is that of node 0
  // The nodes' votes decide who may be the coordinator, and every node has a peer port. The first coordinator is in a
  // process of its own, in that of node 0, or of the node that writes its entry into the file first; then `hosted` is
  // not set.
  enum class Failover { kOff, kFromAlone, kFromNode0, kByFile };
  Failover failover = Failover::kOff;
  bool lists_hosts = false;          // with failover: the endpoint names further nodes, at which newcomers ask, too
  bool peer_ports_are_shut = false;  // the same: firewalls let connections in at the endpoint's host only
  // Any node may be the host of its job's coordinator.
  bool moves() const { return failover != Failover::kOff; }
  bool is_by_file() const { return failover == Failover::kByFile; }
  Ms loss_timeout_ms = 5000;
  Ms longest_delay_ms = 3;
  bool steady = false;  // every way takes the longest delay
  Ms user_timeout_ms = 0;
  int check_phases = 0;
  Ms training_ms = 200;       // the shortest time that the workers of a round take without faults
  int stubborn_percent = 10;  // of the workers end by SIGKILL only
  int saving_percent = 20;    // of the workers save for a while when they are told to end
  bool guardian_speaks = true;
  int jobs = 1;
  std::optional<HangSetup> hangs = {};  // not set: no round shows progress, and none hangs
};

// The setup of a seed. With `nodes` of 0 the seed decides their number, too.
Setup setup_of(std::uint64_t seed, int nodes = 0);
// A plain job of so many nodes, all of which are needed, for simulations whose faults are chosen by hand.
Setup plain_setup(std::uint64_t seed, int nodes);
std::string text(const Setup& setup);

// The longest time from the last fault until a round runs or the job is over: the sum of all timeouts that may follow
// each other. setup.cpp lists them.
Ms settling_bound_ms(const Setup& setup);

}  // namespace elastic::simulation
