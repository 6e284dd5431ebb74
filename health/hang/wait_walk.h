#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "health/hang/hang_facts.h"
#include "health/hang/rank_runs.h"

// Who waits for whom, by how far each rank is in each group that it communicates in.
//
// In a group a member whose newest collective is not over waits for each member that has launched fewer. A send or recv
// waits for its partner, unless that is in one with this rank. Of the groups' edges follows:
//
//   culprits  ranks that are waited for, and wait nowhere themselves
//   cycle     ranks that wait for each other: their collectives are called in different orders
//   mismatch  members of a group in the same collective by number, with other operations, sizes or types
//   stuck     groups all of whose members have launched the same collective, which is not over: nobody is waited for.
//             A group of which not all members are known is none of them
//
// A member of which nothing is known is never behind: who might be waited for only stands in `maybe`.
namespace elastic::hang {

struct WaitWalk {
  // Ranks behind in a group, as an explanation.
  struct Behind {
    std::string group = {};
    std::string operation = {};  // in which the others wait; empty: unknown
    std::int64_t number = 0;     // of that
    std::int64_t reached = 0;    // the number of the last one that the rank behind has launched
    RankRuns waiting = {};       // all ranks that wait there
    bool operator==(const Behind&) const = default;
  };
  struct Culprit {
    std::int32_t rank = 0;
    Behind behind = {};  // in the group in which most ranks wait for it
    bool operator==(const Culprit&) const = default;
  };
  struct Mismatch {
    struct Side {
      std::string operation = {};
      std::uint32_t digest = 0;
      RankRuns ranks = {};
      bool operator==(const Side&) const = default;
    };
    std::string group = {};
    std::int64_t number = 0;
    std::vector<Side> sides = {};  // the smallest first
    bool is_even = false;          // the smallest two are equally great: there is no minority
    bool operator==(const Mismatch&) const = default;
  };
  bool has_facts = false;              // of any group
  std::vector<Culprit> culprits = {};  // by rank
  RankRuns cycle = {};
  std::optional<Mismatch> mismatch = {};  // of the first group that has one
  std::vector<std::uint32_t> stuck = {};  // places in the list of groups
  std::int64_t stuck_number = 0;          // of the first such group
  std::string stuck_operation = {};
  RankRuns stuck_members = {};  // of all such groups
  // Ranks of which no group tells anything, and which have not said all that they know.
  RankRuns unseen = {};
  // Ranks of which nothing is known, in groups in which others wait and nobody is seen behind; and how many more there
  // are whose number is not known.
  RankRuns maybe = {};
  std::size_t maybe_more = 0;
};

// What the walk begins with: groups of all nodes, each once, and what is known of each member.
struct WaitFacts {
  std::int32_t world_size = 0;
  std::vector<Group> groups = {};
  std::vector<GroupFact> facts = {};  // of one rank no more than one for a group, and one for each partner
  // Ranks that have said all that they know: one of these that says nothing of a group has launched nothing there.
  // Of any other rank nothing is concluded from what it does not say.
  RankRuns complete = {};
};

// Linear in the members of all groups, but for sorting the numbers in each.
WaitWalk walk(const WaitFacts& facts);

}  // namespace elastic::hang
