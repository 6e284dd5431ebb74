#include "cli/run/node_stacks.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "health/stacks/bounds.h"
#include "health/stacks/groups.h"
#include "src/process/descendants.h"

namespace elastic::run {

NodeStacks::NodeStacks(net::Loop& loop, process::WorkerTree& tree, OnCollected on_collected)
    : on_collected_(std::move(on_collected)),
      collector_(loop, {.start = [&tree](const process::Command& command) { return tree.start_onlooker(command); },
                        .kill = [&tree](pid_t reader) { tree.end_onlooker(reader); }}) {}

void NodeStacks::collect(std::uint64_t collection, const status::Node& node) {
  collection_ = collection;
  if (collector_.is_collecting()) return;
  const std::vector<process::ProcessFacts> all = process::descendants_of(getpid());
  std::vector<StacksTarget> targets;
  for (const status::Worker& worker : node.workers) {
    if (!worker.running) continue;
    const auto pid = static_cast<pid_t>(worker.pid);
    targets.push_back({.rank = worker.rank, .pid = pid, .children = children_of(pid, all)});
  }
  collector_.collect(std::move(targets), [this](const std::vector<stacks::RankLook>& looks) { collected(looks); });
}

void NodeStacks::collected(const std::vector<stacks::RankLook>& looks) {
  const std::size_t most = std::min(looks.size() * stacks::kMostBytesOfRank, stacks::kMostBytesOfNode);
  on_collected_({.collection = collection_, .groups = stacks::text_of(stacks::grouped(looks), most), .problem = ""});
}

}  // namespace elastic::run
