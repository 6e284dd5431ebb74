#include "health/hang/late_dumps.h"

#include <algorithm>

namespace elastic::hang {

bool can_still_dump(const RankFacts& rank) {
  const bool was_had = rank.recorder.state == Source::kHad || rank.recorder.state == Source::kPartial;
  // The threads of a worker that is stopped are, too.
  const bool is_able = rank.state != ThreadState::kStopped && rank.state != ThreadState::kGone;
  return rank.reads_dump_key && !was_had && is_able;
}

bool want_dump_key(const JobFacts& facts) {
  const bool have_store = std::ranges::any_of(facts.nodes, [](const NodeFacts& node) {
    return node.store_source.state == Source::kHad || node.store_source.state == Source::kPartial;
  });
  return have_store && std::ranges::any_of(facts.nodes, [](const NodeFacts& node) {
           return std::ranges::any_of(node.ranks, can_still_dump);
         });
}

}  // namespace elastic::hang
