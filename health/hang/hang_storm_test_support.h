#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "health/hang/hang_test_support.h"
#include "src/base/test_random.h"

// Jobs that hang, at random, and evidence that is lost.
namespace elastic::hang {

enum class Sources { kStacks, kRecorder, kRas, kRecorderAndStacks, kRasAndStacks };
inline constexpr std::array kAllSources = {Sources::kStacks, Sources::kRecorder, Sources::kRas,
                                           Sources::kRecorderAndStacks, Sources::kRasAndStacks};

// A job in tensor groups, one on each node, and data groups across the nodes. The culprit has not come to a collective
// of its tensor group. Its neighbours there wait for it, so that they have not come to one of their data groups, in
// which the rest of the world waits for them. Who waits may have launched collectives ahead.
struct Storm {
  HungJob job;
  int culprit;

  Storm(TestRandom& random, int nodes, int per_node, Sources sources)
      : job(nodes, per_node), culprit(pick(random, nodes * per_node)) {
    const bool has_stacks = sources != Sources::kRecorder && sources != Sources::kRas;
    if (!has_stacks) {
      job.forget_stacks();
    } else {
      for (NodeFacts& node : job.facts.nodes) {
        node.different_stacks.push_back(in_torch("reduce_scatter_tensor"));
        node.different_stacks.push_back(stack_in("load_batch", "data.py", 88));
        for (RankFacts& rank : node.ranks) rank.stack = std::uint16_t{1};
      }
      const int first = culprit / per_node * per_node;
      for (int rank = first; rank < first + per_node; ++rank) job.rank(rank).stack = std::uint16_t{0};
      job.rank(culprit).stack = std::uint16_t{2};
    }
    const bool has_ras = sources == Sources::kRas || sources == Sources::kRasAndStacks;
    const bool has_recorder = sources == Sources::kRecorder || sources == Sources::kRecorderAndStacks;
    if (has_ras || has_recorder) launch(random, nodes, per_node, has_ras);
  }

  static int pick(TestRandom& random, int count) {
    return static_cast<int>(random() % static_cast<std::uint64_t>(count));
  }

  void launch(TestRandom& random, int nodes, int per_node, bool is_ras) {
    RasFacts ras;
    std::vector<RankRuns> data(static_cast<std::size_t>(per_node));
    for (int rank = 0; rank < nodes * per_node; ++rank) data[static_cast<std::size_t>(rank % per_node)].add(rank);
    const int beside = culprit / per_node;
    for (int node = 0; node < nodes; ++node) {
      NodeFacts& facts = job.facts.nodes[static_cast<std::size_t>(node)];
      const std::string tensor = "tp_" + std::to_string(node);
      facts.groups.push_back({tensor, facts.own_ranks, 1, per_node});
      if (is_ras) ras.groups.push_back({tensor, facts.own_ranks});
      for (int local = 0; local < per_node; ++local) {
        const int number = node * per_node + local;
        // A node names its own member only.
        facts.groups.push_back({"dp_" + std::to_string(local), RankRuns::of({number}), 2, nodes});
        const std::int64_t ahead = pick(random, 4) == 0 ? pick(random, 3) : 0;
        const bool waits_in_tensor = node == beside && number != culprit;
        const bool waits_in_data = node != beside && nodes > 1;
        add(ras, is_ras, facts, number, 0, static_cast<std::uint32_t>(node), number == culprit ? 8 : 9, waits_in_tensor,
            ahead);
        add(ras, is_ras, facts, number, static_cast<std::uint32_t>(local + 1),
            static_cast<std::uint32_t>(nodes + local), waits_in_data ? 5 : 4, waits_in_data, ahead);
      }
    }
    if (!is_ras) return;
    for (int local = 0; local < per_node; ++local)
      ras.groups.push_back({"dp_" + std::to_string(local), data[static_cast<std::size_t>(local)]});
    for (NodeFacts& node : job.facts.nodes) node.groups.clear();
    job.facts.nodes[0].ras = std::move(ras);
  }

  static void add(RasFacts& ras, bool is_ras, NodeFacts& node, int rank, std::uint32_t own_group,
                  std::uint32_t ras_group, std::int64_t launched, bool waits, std::int64_t ahead) {
    GroupFact fact{.ranks = RankRuns::of({rank}),
                   .enqueued = launched + (waits ? ahead : 0),
                   .retired = waits ? launched - 1 : launched,
                   .operation = "all_reduce",
                   .digest = 7};
    if (is_ras) {
      fact.group = ras_group;
      fact.retired.reset();
      fact.operation.clear();
      fact.digest = 0;
      ras.counts.push_back(fact);
    } else {
      fact.group = own_group;
      node.ranks[static_cast<std::size_t>(rank - node.own_ranks.front())].recorder = {Source::kHad};
      node.group_facts.push_back(fact);
    }
  }
};

// Each piece of evidence is lost with this probability: nodes, stacks, recorders, what RAS says of a rank.
inline void lose(TestRandom& random, HungJob& job, int percent) {
  const auto is_lost = [&] { return Storm::pick(random, 100) < percent; };
  for (std::size_t i = 0; i < job.facts.nodes.size(); ++i) {
    if (is_lost()) job.lose_evidence(static_cast<int>(i));
  }
  for (NodeFacts& node : job.facts.nodes) {
    RankRuns silent;
    for (RankFacts& rank : node.ranks) {
      if (is_lost()) rank.stack.reset();
      if (!is_lost()) continue;
      rank.recorder = {Source::kLate};
      silent.add(rank.rank);
    }
    std::erase_if(node.group_facts, [&](const GroupFact& fact) { return silent.meets(fact.ranks); });
    std::erase_if(node.ranks, [&](const RankFacts&) { return is_lost(); });
    if (node.ras) std::erase_if(node.ras->counts, [&](const GroupFact&) { return is_lost(); });
  }
  // Of a rank that is left out nothing is known, its groups neither.
  for (NodeFacts& node : job.facts.nodes) {
    std::erase_if(node.group_facts, [&](const GroupFact& fact) {
      return std::ranges::none_of(node.ranks, [&](const RankFacts& rank) { return rank.rank == fact.ranks.front(); });
    });
  }
}

// Jobs in which no node is at fault, and the rule that says so where all evidence is there.
struct Blameless {
  const char* what;
  int rule;
  void (*make)(HungJob& job);
};
inline const std::array kBlameless = {
    Blameless{"the fabric", 10, [](HungJob& job) { job.record(9); }},
    Blameless{"the fabric, by RAS", 10, [](HungJob& job) { job.count_by_ras(90); }},
    Blameless{"nothing to compare", 11, [](HungJob& job) { job.put_all(stack_in("step")); }},
    Blameless{"a mismatched collective", 6,
              [](HungJob& job) {
                for (int rank = 0; rank < job.facts.world_size; rank += 2) job.put(rank, in_torch("broadcast"));
              }},
    Blameless{"halves at different places", 11,
              [](HungJob& job) {
                for (int rank = 0; rank < job.facts.world_size; rank += 2) job.put(rank, stack_in("step"));
              }},
    Blameless{"ranks that wait for each other", 6,
              [](HungJob& job) {
                job.record(9);
                for (NodeFacts& node : job.facts.nodes) {
                  node.groups.push_back({"dp", RankRuns::all(job.facts.world_size)});
                  for (RankFacts& rank : node.ranks) {
                    const bool is_first = rank.rank == 0;
                    node.group_facts.push_back(
                        {.group = 1, .ranks = RankRuns::of({rank.rank}), .enqueued = is_first ? 6 : 5, .retired = 5});
                  }
                }
                job.let_lag(0);
              }},
    Blameless{"a rank that waits for a message that nobody has counted", 11,
              [](HungJob& job) {
                job.record(9);
                job.let_lag(1);
                job.put(1, in_torch("recv"));
              }},
    Blameless{"storage, with two ranks that save", 2,
              [](HungJob& job) {
                job.put(0, stack_in("save"));
                job.put(job.facts.world_size - 1, stack_in("save"));
              }},
    Blameless{"storage, seen by the kernel only", 2, [](HungJob& job) {
                for (const int rank : {0, job.facts.world_size - 1}) {
                  job.rank(rank).state = ThreadState::kDisk;
                  job.rank(rank).wchan = "rpc_wait_bit_killable";
                }
              }}};

}  // namespace elastic::hang
