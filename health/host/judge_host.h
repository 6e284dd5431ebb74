#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "health/host/facts.h"
#include "health/host/thresholds.h"
#include "health/messages/messages.h"

// Findings about a host, by the table in thresholds.h.
namespace elastic::health {

// What is to run on the host.
struct HostNeeds {
  int nproc = 1;                             // workers, at least 1
  std::vector<std::string> interfaces = {};  // those with the addresses that the node uses; empty: all physical ones
  std::string log_directory = {};
};

// `before` and `after` the check: counters are judged by how much they rose in between, everything else by `after`.
// What is not known is not judged.
std::vector<Finding> judge_host(const HostFacts& before, const HostFacts& after, const HostNeeds& needs);

// The findings that a node has reported so far in a check, which looks at the host more than once.
class ToldFindings {
 public:
  // Returns those findings of judge_host() that were not reported before, and remembers them. A finding that differs in
  // its figures only is not new.
  std::vector<Finding> new_ones(std::vector<Finding> found);

 private:
  // Severity and remedy stand for the rule, and the place for what the rule was applied to.
  std::set<std::tuple<Severity, std::string, std::string>> told_;
};

// How far the wall clock of one node is ahead of another's, as measured by one of the two.
struct ClockOffset {
  int of = 0;  // node ranks
  int against = 0;
  double ahead_ms = 0;
};

// A finding for each node whose clock differs too much from the median of all clocks that it was compared with,
// directly or by way of other nodes. Of two nodes both have one, since it is not known which clock is right. By node
// rank.
std::vector<NodeFinding> clock_findings(const std::vector<ClockOffset>& offsets);

}  // namespace elastic::health
