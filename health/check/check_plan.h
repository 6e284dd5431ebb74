#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "health/messages/check_rules.h"
#include "src/base/fields.h"
#include "src/base/limits.h"

namespace elastic::health {

// A node of a round that is to be checked. Its index in a list is its node rank.
struct CheckNode {
  std::string address;
  int local_world_size = 0;
  bool passed = false;         // a check of an earlier round found it fit, and it has not been lost since
  std::string addresses = {};  // numeric, of its interfaces, with spaces between them; empty: not known
  std::string group = {};      // nodes of one group are near each other, as in a rack; empty: not known
};

// The nodes' answers in one phase, by node rank.
using CheckResults = std::vector<std::string>;

// What the check before training consists of. The coordinator carries it out: in each round, before the workers run,
// it asks the plan for its phases one after the other, sends each node its order (RunCheck), gathers the results of
// all nodes (CheckDone), and removes the nodes that unhealthy() names from the job. Removing nodes makes a new round;
// the others have `passed` in it, so that only newcomers are checked. If the job's rules (CheckRules) want no check,
// the plan is not asked.
//
// One plan serves the whole job and keeps nothing between calls: its answers follow from the arguments alone, so that
// another coordinator that takes the job over gets the same ones. Orders and results are texts in the plan's own form.
// A call takes time linear in the number of nodes: a round may have 10,000 of them.
class CheckPlan {
 public:
  virtual ~CheckPlan() = default;

  // How many phases the check of these nodes has; with 0 their workers run at once.
  virtual int phases(const std::vector<CheckNode>& nodes, const CheckRules& rules) const = 0;

  // The orders of a phase (counted from 0), one for each node, also for nodes that do nothing in it. `earlier` has the
  // results of all phases before it.
  virtual std::vector<std::string> orders(std::uint32_t phase, const std::vector<CheckNode>& nodes,
                                          const std::vector<CheckResults>& earlier, const CheckRules& rules) const = 0;

  // The nodes that are not fit, by ascending rank, each with the reason ("its all-reduce failed with two others"). It
  // is asked when all phases are over. Results that cannot be read make their node unhealthy. Stragglers train unless
  // the job's rules exclude them; for a bad link between two good nodes, which is listed for the lower rank, no node is
  // excluded.
  struct Unhealthy {
    enum class Kind : std::uint8_t { kFaulty, kUndetermined, kStraggler, kLink };
    int node_rank = 0;
    std::string why;
    Kind kind = Kind::kFaulty;
    bool operator==(const Unhealthy&) const = default;
    static void fields(auto& io, auto& v) {
      io("node_rank", v.node_rank, at_most(limits::kNodesPerJob));
      io("why", v.why);
      io.if_set("kind", v.kind);
    }
  };
  virtual std::vector<Unhealthy> unhealthy(const std::vector<CheckNode>& nodes,
                                           const std::vector<CheckResults>& results) const = 0;
};

constexpr auto names_of(CheckPlan::Unhealthy::Kind) {
  return std::array{"faulty", "undetermined", "straggler", "link"};
}

// A plan without phases: every node is fit.
std::unique_ptr<CheckPlan> no_check();

}  // namespace elastic::health
