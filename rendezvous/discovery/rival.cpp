#include "rendezvous/discovery/rival.h"

#include <tuple>

namespace elastic::discovery {
namespace {

// The greater one goes on.
auto weight(const Rival& job) {
  const std::int64_t rounds = job.round ? std::int64_t{*job.round} + 1 : 0;
  return std::tuple(rounds, -job.birth_ms, job.incarnation);
}

}  // namespace

Rivalry judge_rival(const Rival& own, const Rival& other) {
  if (own.incarnation == other.incarnation || weight(own) > weight(other)) return Rivalry::kGoesOn;
  return own.round ? Rivalry::kEnds : Rivalry::kGivesWay;
}

}  // namespace elastic::discovery
