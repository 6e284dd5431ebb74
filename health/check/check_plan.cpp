#include "health/check/check_plan.h"

namespace elastic::health {

int NoCheck::phases(const std::vector<CheckNode>&, const CheckRules&) const { return 0; }

std::vector<std::string> NoCheck::orders(std::uint32_t, const std::vector<CheckNode>& nodes,
                                         const std::vector<CheckResults>&, const CheckRules&) const {
  return std::vector<std::string>(nodes.size());
}

std::vector<CheckPlan::Unhealthy> NoCheck::unhealthy(const std::vector<CheckNode>&,
                                                     const std::vector<CheckResults>&) const {
  return {};
}

std::unique_ptr<CheckPlan> no_check() { return std::make_unique<NoCheck>(); }

}  // namespace elastic::health
