#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "health/messages/messages.h"

// The line about one node that --check-only prints. It can be used as the reason of a drained node.
namespace elastic::health {

// | the line of `--check-only` for a drain reason | {kDrainLineBytes}, without its end | it is cut, with `...` |
inline constexpr std::size_t kDrainLineBytes = 200;

struct NodeOutcome {
  bool was_checked = false;
  std::string why_not = {};            // why it was not checked, as a clause
  std::string flaw = {};               // what the verdict of the job says about this node, as a clause; empty: nothing
  std::vector<Finding> findings = {};  // the node's own
  bool others_are_unhealthy = false;   // another node, or a link for which another node is named
};

// The line, without a line end: `program`, and what is wrong with the node, the worst first ("elastic-run: eth1 has no
// link; /dev/shm is small: 64 MiB"); or "healthy", with the warnings after it; or "not checked: why". It is printable
// ASCII without quotes, backslashes, $ and `, so that it can stand between quotes in a shell.
std::string drain_line(std::string_view program, const NodeOutcome& outcome);

// What the verdict of a job with --check-only says about one node: from "...: node 1 (10.0.0.2): its exchange failed;
// node 3:
// ..." it takes "its exchange failed" for rank 1. Empty if the node is not named.
std::string flaw_of_node(std::string_view reason, int node_rank);

}  // namespace elastic::health
