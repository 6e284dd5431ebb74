#include "health/check/check_plan.h"

namespace elastic::health {
namespace {

class NoCheck : public CheckPlan {
 public:
  int phases(const std::vector<CheckNode>&, const CheckRules&) const override { return 0; }
  std::vector<std::string> orders(std::uint32_t, const std::vector<CheckNode>& nodes, const std::vector<CheckResults>&,
                                  const CheckRules&) const override {
    return std::vector<std::string>(nodes.size());
  }
  std::vector<Unhealthy> unhealthy(const std::vector<CheckNode>&, const std::vector<CheckResults>&) const override {
    return {};
  }
};

}  // namespace

std::unique_ptr<CheckPlan> no_check() { return std::make_unique<NoCheck>(); }

}  // namespace elastic::health
