#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// A node of a round that is to be checked, at the index of its node rank.
struct CheckNode {
  std::string address;
  int local_world_size = 0;
  bool passed = false;         // a check of an earlier round found it fit, and it has not been lost since
  std::string addresses = {};  // numeric, of its interfaces, with spaces between them; empty: not known
  std::string group = {};      // it is near the nodes of the same name, in a rack; empty: not told
};

// What the nodes of one phase answered, at the index of the node rank.
using CheckResults = std::vector<std::string>;

// What a check before training consists of. The coordinator carries it out: in each round, before the workers run,
// it asks for the phases one after the other, sends each node its order (RunCheck), gathers the results
// (CheckDone) of all, and takes those that unfit() names out of the job. Taking nodes out makes a new round; the
// others have `passed` in it, so that only newcomers are checked, and none if there are none. Where the job's rules
// (protocol::CheckRules) want no check the plan is not asked.
//
// One plan serves the whole job and keeps nothing between calls: what it says follows from the arguments,
// so that it is the same after a coordinator's memory was rebuilt. Orders and results are texts in a form of its own.
// Each call may cost about as much as there are nodes, not more: a round may have 10,000 of them.
class CheckPlan {
 public:
  virtual ~CheckPlan() = default;

  // How many phases a round of these nodes passes; 0: its workers run at once.
  virtual int phases(const std::vector<CheckNode>& nodes, const protocol::CheckRules& rules) const = 0;

  // The orders of a phase (counted from 0), one for each node, an idle one's too. `earlier` has the results of all
  // phases before it.
  virtual std::vector<std::string> orders(std::uint32_t phase, const std::vector<CheckNode>& nodes,
                                          const std::vector<CheckResults>& earlier,
                                          const protocol::CheckRules& rules) const = 0;

  // The nodes that are not fit, by ascending rank, each with why ("its all-reduce failed with two others"), judged when
  // all phases are over. Results that cannot be read make their node unfit. Stragglers train, unless the job's rules
  // exclude them; for a link between two good nodes, told for the lower rank, nobody is left out.
  struct Unfit {
    enum class Kind : std::uint8_t { kFaulty, kUndetermined, kStraggler, kLink };
    int node_rank = 0;
    std::string why;
    Kind kind = Kind::kFaulty;
    bool operator==(const Unfit&) const = default;
  };
  virtual std::vector<Unfit> unfit(const std::vector<CheckNode>& nodes,
                                   const std::vector<CheckResults>& results) const = 0;
};

// No phases: every node is fit.
class NoCheck : public CheckPlan {
 public:
  int phases(const std::vector<CheckNode>& nodes, const protocol::CheckRules& rules) const override;
  std::vector<std::string> orders(std::uint32_t phase, const std::vector<CheckNode>& nodes,
                                  const std::vector<CheckResults>& earlier,
                                  const protocol::CheckRules& rules) const override;
  std::vector<Unfit> unfit(const std::vector<CheckNode>& nodes,
                           const std::vector<CheckResults>& results) const override;
};

std::unique_ptr<CheckPlan> no_check();

}  // namespace elastic::coordinator
