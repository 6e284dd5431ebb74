#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "health/tuning/loader_word.h"

namespace elastic::tuning {

// What the other nodes of a round have told the one of group rank 0 of themselves.
class OtherNodes {
 public:
  void begin_round(int count);
  // A state that makes no sense counts as not told.
  void heard(int node_rank, const NodeState& state);
  // The first node of which nothing was heard in this round; nothing: all have told.
  std::optional<int> silent() const;
  // The first node where no worker has read these values, or later ones; nothing: there is none.
  std::optional<int> not_read(std::int64_t version) const;
  // The least of all nodes, this one's included. Memory is nothing where it is not known of each.
  std::optional<std::uint64_t> least_free(std::optional<std::uint64_t> own) const;
  int least_cpus(int own) const;
  // From now on memory is taken.
  void mark();
  // How much that is by now on the node that has lost most.
  std::uint64_t most_taken() const;

 private:
  struct Node {
    std::optional<NodeState> state = {};
    std::optional<std::int64_t> marked_bytes = {};
  };
  std::vector<Node> nodes_;  // by node rank, from 1 on
};

}  // namespace elastic::tuning
