#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cli/run/stacks_collector.h"
#include "health/stacks/look.h"
#include "rendezvous/protocol/messages.h"
#include "src/net/loop.h"
#include "src/process/tree.h"
#include "src/status/snapshot.h"

namespace elastic::run {

// Sees what this node's workers are doing when the coordinator wants to know, by processes beside the workers.
class NodeStacks {
 public:
  using OnCollected = std::function<void(protocol::NodeStacks)>;

  // `tree` starts and reaps those processes, and outlives this object.
  NodeStacks(net::Loop& loop, process::WorkerTree& tree, OnCollected on_collected);

  // Looks at those of the node's workers that run. `on_collected` is called in a later turn of the loop; once, with the
  // newer number, for a collection that is wanted while another one is under way.
  void collect(std::uint64_t collection, const status::Node& node);

 private:
  void collected(const std::vector<stacks::RankLook>& looks);

  OnCollected on_collected_;
  StacksCollector collector_;
  std::uint64_t collection_ = 0;
};

}  // namespace elastic::run
