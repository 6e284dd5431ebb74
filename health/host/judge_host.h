#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "health/host/facts.h"
#include "health/host/thresholds.h"
#include "health/messages/messages.h"

// What is not as training wants it, by the table in thresholds.h.
namespace elastic::health {

// What is to run on the host.
struct HostNeeds {
  int nproc = 1;                             // workers, at least 1
  std::vector<std::string> interfaces = {};  // that have the addresses which the node uses; none: all physical ones
  std::string log_directory = {};
};

// `before` and `after` the check: what counts up is told if it rose meanwhile, all else as it is after. What is not
// known is not judged.
std::vector<Finding> judge_host(const HostFacts& before, const HostFacts& after, const HostNeeds& needs);

// What was told of a host in a check that looks at it more than once.
class ToldFindings {
 public:
  // Those of judge_host() that were not told before, if only with another figure. From now on they were.
  std::vector<Finding> new_ones(std::vector<Finding> found);

 private:
  // The severity and the remedy say by which rule, the place says of what.
  std::set<std::tuple<Severity, std::string, std::string>> told_;
};

// How far the wall clock of one node is ahead of another's, as one of the two has found.
struct ClockOffset {
  int of = 0;  // node ranks
  int against = 0;
  double ahead_ms = 0;
};

// Those whose clock is away from the median of all that they were compared with, directly or by way of others; of two
// nodes both, since nobody knows which of them is right. By rank.
std::vector<NodeFinding> clock_findings(const std::vector<ClockOffset>& offsets);

}  // namespace elastic::health
