#include "rendezvous/discovery/duplicate_job.h"

#include <tuple>

namespace elastic::discovery {
namespace {

// The greater one goes on.
auto weight(const DuplicateJob& job) {
  const std::int64_t rounds = job.round ? std::int64_t{*job.round} + 1 : 0;
  return std::tuple(rounds, -job.birth_ms, job.incarnation);
}

}  // namespace

Duplicate judge_duplicate_job(const DuplicateJob& own, const DuplicateJob& other) {
  if (own.incarnation == other.incarnation || weight(own) > weight(other)) return Duplicate::kGoesOn;
  return own.round ? Duplicate::kEnds : Duplicate::kGivesWay;
}

}  // namespace elastic::discovery
