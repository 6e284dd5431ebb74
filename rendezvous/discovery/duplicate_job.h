#pragma once

#include <cstdint>
#include <optional>

#include "rendezvous/protocol/messages.h"

namespace elastic::discovery {

// What a coordinator does about a duplicate job, another one of its name that was begun independently: a host that
// knows nothing of the job has come back where nodes look for it, or a name leads to several hosts.
enum class Duplicate : std::uint8_t {
  kGoesOn,    // the other one gives way, or none has to
  kGivesWay,  // it has formed no round: its nodes join the other job
  kEnds,      // both have formed rounds: this job ends, with a result that names the other one
};

struct DuplicateJob {
  protocol::Incarnation incarnation = 0;
  std::int64_t birth_ms = 0;
  std::optional<protocol::RoundNumber> round = {};
};

// A job that has formed a round goes before one that has not; of two that have, the one with more rounds; then the one
// that was born earlier. Both sides decide alike. Coordinators of one incarnation are no duplicate jobs: the votes of
// their nodes decide.
Duplicate judge_duplicate_job(const DuplicateJob& own, const DuplicateJob& other);

}  // namespace elastic::discovery
