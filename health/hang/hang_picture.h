#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "health/hang/hang_facts.h"
#include "health/hang/stack_words.h"
#include "health/hang/wait_walk.h"

// The facts of all nodes as one picture of the job, which the rules look at.
namespace elastic::hang {

class HangPicture {
 public:
  struct Rank {
    std::size_t node = 0;              // its place in facts().nodes
    const RankFacts* facts = nullptr;  // null: nothing is known of it
    const Stack* stack = nullptr;      // null: it is not known
    StackMeaning meaning = {};
    const Stack* child_stack = nullptr;

    bool is(ThreadState state) const { return facts != nullptr && facts->state == state; }
    bool is_in(Doing doing) const { return meaning.doing == doing; }
  };

  // Takes the facts as nodes have sent them, and brings them within their bounds.
  explicit HangPicture(JobFacts facts);
  HangPicture(const HangPicture&) = delete;  // ranks point into the facts
  HangPicture& operator=(const HangPicture&) = delete;

  const JobFacts& facts() const { return facts_; }
  std::int32_t world_size() const { return facts_.world_size; }
  // By their numbers. A rank that no node calls its own has the place of no node, nodes().size().
  const std::vector<Rank>& ranks() const { return ranks_; }
  const Rank& rank(std::int32_t rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  const std::vector<NodeFacts>& nodes() const { return facts_.nodes; }
  // "rank 5 (node gpu-03)", of a node without a name "rank 5".
  std::string rank_text(std::int32_t rank) const;
  std::string node_name(std::int32_t rank) const;

  // Who waits for whom, by the flight recorders, or by RAS where these say nothing.
  const WaitWalk& waits() const { return waits_; }
  const RasFacts* ras() const { return ras_; }        // of the first node that has it; null: nobody has
  const StoreFacts* store() const { return store_; }  // the same
  const RankRuns& without_facts() const { return without_facts_; }
  std::size_t known_stacks() const { return known_stacks_; }

  // The ranks for which a condition holds.
  RankRuns ranks_where(const auto& holds) const {
    RankRuns found;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (holds(ranks_[i])) found.add(static_cast<std::int32_t>(i));
    }
    return found;
  }
  // The nodes of these ranks, each once, in rising order.
  std::vector<std::size_t> nodes_of(const RankRuns& ranks) const;

 private:
  void place_ranks();
  void walk_groups();

  JobFacts facts_;
  std::vector<Rank> ranks_;
  WaitWalk waits_;
  const RasFacts* ras_ = nullptr;
  const StoreFacts* store_ = nullptr;
  RankRuns without_facts_;
  std::size_t known_stacks_ = 0;
};

}  // namespace elastic::hang
