#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "health/messages/messages.h"

// One line about one node, as --check-only prints it: fit for the reason of a drained node.
namespace elastic::health {

// Of the line, without its end.
inline constexpr std::size_t kDrainLineBytes = 200;

struct NodeOutcome {
  bool was_checked = false;
  std::string why_not = {};            // as a clause, if it was not
  std::string flaw = {};               // what the check of all nodes says of this one, as a clause; empty: nothing
  std::vector<Finding> findings = {};  // the node's own
  bool others_are_unfit = false;       // another node, or a link of which this node is not named
};

// "elastic-run: the link of eth1 is down; /dev/shm is small: 64 MiB", the worst first; ": healthy" where nothing is
// wrong with the node, with warnings behind it; ": not checked: why". Printable ASCII without quotes, backslashes, $
// and `: it can stand between quotes in a shell. `program` begins it. No line end.
std::string drain_line(std::string_view program, const NodeOutcome& outcome);

// What a verdict of a job that was only checked says of one node: of "...: node 1 (10.0.0.2): its exchange failed; node
// 3:
// ..." for rank 1 "its exchange failed". Empty: nothing.
std::string flaw_of_node(std::string_view reason, int node_rank);

}  // namespace elastic::health
