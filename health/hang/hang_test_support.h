#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "health/hang/hang_judge.h"

namespace elastic::hang {

inline Stack stack_in(std::string function, std::string file = "train.py", std::int32_t line = 150) {
  return {{{std::move(function), std::move(file), line}, {"main", "train.py", 200}}};
}
inline Stack in_torch(std::string operation) {
  return {{{std::move(operation), "/x/torch/distributed/distributed_c10d.py", 2806},
           {"wrapper", "/x/torch/distributed/c10d_logger.py", 81},
           {"train_step", "/home/u/train.py", 150}}};
}

// A job whose ranks all wait in all_reduce, until a test says otherwise. Without recorders.
struct HungJob {
  HungJob(int nodes, int ranks_per_node, const Stack& all_in = in_torch("all_reduce")) : per_node(ranks_per_node) {
    facts.world_size = nodes * ranks_per_node;
    for (int node = 0; node < nodes; ++node) {
      NodeFacts& known = facts.nodes.emplace_back();
      known.name = "gpu-" + std::to_string(node);
      known.has_answered = true;
      known.stacks = {Source::kHad};
      known.different_stacks.push_back(all_in);
      for (int local = 0; local < ranks_per_node; ++local) {
        RankFacts& rank = known.ranks.emplace_back();
        rank.rank = node * ranks_per_node + local;
        rank.pid = 4000 + rank.rank;
        rank.state = ThreadState::kSleeps;
        rank.state_ms = 60'000;
        rank.wchan = "futex_do_wait";
        rank.stack = rank.stack_then = std::uint16_t{0};
        known.own_ranks.add(rank.rank);
      }
    }
  }

  NodeFacts& node_of(int rank) { return facts.nodes[static_cast<std::size_t>(rank / per_node)]; }
  RankFacts& rank(int number) { return node_of(number).ranks[static_cast<std::size_t>(number % per_node)]; }
  RankFacts& put(int number, const Stack& stack) {
    NodeFacts& node = node_of(number);
    node.different_stacks.push_back(stack);
    rank(number).stack = static_cast<std::uint16_t>(node.different_stacks.size() - 1);
    return rank(number);
  }
  void put_all(const Stack& stack) {
    for (int number = 0; number < facts.world_size; ++number) put(number, stack);
  }
  void forget_stacks() {
    for (NodeFacts& node : facts.nodes) {
      node.stacks = {Source::kRefused, "Yama"};
      for (RankFacts& known : node.ranks) known.stack.reset();
    }
  }
  // Of one group of all ranks: each has launched `number`, which is not over.
  void record(std::int64_t number, const std::string& operation = "all_reduce") {
    for (NodeFacts& node : facts.nodes) {
      node.groups = {{"tp_0", RankRuns::all(facts.world_size)}};
      node.group_facts.clear();
      for (RankFacts& known : node.ranks) {
        known.recorder = {Source::kHad};
        node.group_facts.push_back({.ranks = RankRuns::of({known.rank}),
                                    .enqueued = number,
                                    .retired = number - 1,
                                    .operation = operation,
                                    .digest = 7});
      }
    }
  }
  GroupFact& recorded(int number) { return node_of(number).group_facts[static_cast<std::size_t>(number % per_node)]; }
  // The last one that it has launched is over.
  void let_lag(int number, std::int64_t by = 1) {
    GroupFact& fact = recorded(number);
    fact.enqueued -= by;
    fact.retired = fact.enqueued;
  }
  void count_by_ras(std::int64_t number, const RankRuns& behind = {}) {
    RasFacts ras;
    ras.groups = {{"0xabc", RankRuns::all(facts.world_size)}};
    RankRuns ahead;
    for (int rank_of = 0; rank_of < facts.world_size; ++rank_of) {
      if (!behind.contains(rank_of)) ahead.add(rank_of);
    }
    ras.counts.push_back({.ranks = ahead, .enqueued = number, .digest = 7});
    if (!behind.empty()) ras.counts.push_back({.ranks = behind, .enqueued = number - 1, .digest = 8});
    facts.nodes[0].ras = ras;
  }
  // A node that does not answer in time.
  void lose_evidence(int node) {
    NodeFacts& lost = facts.nodes[static_cast<std::size_t>(node)];
    lost = {.name = lost.name, .own_ranks = lost.own_ranks};
  }

  HangVerdict judged(const JudgeSettings& settings = {}) const { return judge(HangPicture(facts), settings); }

  JobFacts facts;
  int per_node;
};

// The ranks, or the names of the nodes, that a verdict blames: "5", "gpu-1"; "nobody".
inline std::string blamed(const HangVerdict& verdict) {
  std::string text;
  for (const HangCulprit& culprit : verdict.culprits) {
    if (!text.empty()) text += ",";
    text += culprit.rank < 0 ? culprit.node : std::to_string(culprit.rank);
  }
  return text.empty() ? "nobody" : text;
}

}  // namespace elastic::hang
