#include "rendezvous/election/next_leaders.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::election;

namespace {

// Nodes of these groups, by node rank; the coordinator is on the first of them.
std::vector<NextLeaderCandidate> nodes_of(const std::vector<std::string>& groups) {
  std::vector<NextLeaderCandidate> nodes;
  for (const std::string& group : groups) {
    const int rank = static_cast<int>(nodes.size());
    nodes.push_back({.node = {.agent = static_cast<protocol::AgentId>(rank) + 10, .node_rank = rank, .port = 29400},
                     .group = group,
                     .hosts_coordinator = rank == 0});
  }
  return nodes;
}

std::vector<int> ranks_of(const std::vector<NextLeader>& next_leaders) {
  std::vector<int> ranks;
  for (const NextLeader& next_leader : next_leaders) ranks.push_back(next_leader.node_rank);
  return ranks;
}

}  // namespace

TEST_CASE("next leaders are in the order of the node ranks, at most eight, the coordinator's own node last") {
  CHECK(ranks_of(choose_next_leaders(nodes_of({"", "", ""}))) == std::vector<int>{1, 2, 0});
  CHECK(ranks_of(choose_next_leaders(nodes_of({""}))) == std::vector<int>{0});
  CHECK(ranks_of(choose_next_leaders(nodes_of(std::vector<std::string>(12)))) ==
        std::vector<int>{1, 2, 3, 4, 5, 6, 7, 0});
  CHECK(choose_next_leaders({}).empty());
}

TEST_CASE("neighbours among the next leaders are of different groups, and the coordinator's group comes last") {
  CHECK(ranks_of(choose_next_leaders(nodes_of({"a", "a", "a", "b", "b", "c"}))) == std::vector<int>{3, 5, 1, 4, 2, 0});
  CHECK(ranks_of(choose_next_leaders(nodes_of({"a", "a", "", "b", ""}))) == std::vector<int>{2, 3, 4, 1, 0});
}

TEST_CASE("a node that cannot be reached is no next leader") {
  std::vector<NextLeaderCandidate> nodes = nodes_of({"", "", "", ""});
  nodes[0].can_be_reached = nodes[2].can_be_reached = false;
  CHECK(ranks_of(choose_next_leaders(nodes)) == std::vector<int>{1, 3});
}
