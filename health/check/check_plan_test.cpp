#include "health/check/check_plan.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace elastic::health;

namespace {

// The smallest possible check: each node that has not passed yet reports whether it is fit.
class AskEach : public CheckPlan {
 public:
  int phases(const std::vector<CheckNode>& nodes, const CheckRules&) const override {
    return std::ranges::all_of(nodes, &CheckNode::passed) ? 0 : 1;
  }
  std::vector<std::string> orders(std::uint32_t, const std::vector<CheckNode>& nodes, const std::vector<CheckResults>&,
                                  const CheckRules&) const override {
    std::vector<std::string> result;
    for (const CheckNode& node : nodes) result.push_back(node.passed ? "idle" : "check");
    return result;
  }
  std::vector<Unhealthy> unhealthy(const std::vector<CheckNode>& nodes,
                                   const std::vector<CheckResults>& results) const override {
    std::vector<Unhealthy> found;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!nodes[i].passed && results[0][i] != "well") found.push_back({static_cast<int>(i), results[0][i]});
    }
    return found;
  }
};

}  // namespace

TEST_CASE("without a check a round has no phases and every node is fit") {
  const auto plan = no_check();
  const std::vector<CheckNode> nodes = {{"a", 8, false}, {"b", 8, true}};
  CHECK(plan->phases(nodes, {}) == 0);
  CHECK(plan->orders(0, nodes, {}, {}) == CheckResults{"", ""});
  CHECK(plan->unhealthy(nodes, {}).empty());
}

TEST_CASE("after an eviction only the newcomer is checked, and without a newcomer nobody") {
  const AskEach plan;
  const std::vector<CheckNode> first = {{"a", 8, false}, {"b", 8, false}, {"c", 8, false}};
  REQUIRE(plan.phases(first, {}) == 1);
  CHECK(plan.orders(0, first, {}, {}) == CheckResults{"check", "check", "check"});
  CHECK(plan.unhealthy(first, {{"well", "too slow", "well"}}) == std::vector<CheckPlan::Unhealthy>{{1, "too slow"}});

  const std::vector<CheckNode> replaced = {{"a", 8, true}, {"d", 8, false}, {"c", 8, true}};
  REQUIRE(plan.phases(replaced, {}) == 1);
  CHECK(plan.orders(0, replaced, {}, {}) == CheckResults{"idle", "check", "idle"});
  CHECK(plan.unhealthy(replaced, {{"", "well", ""}}).empty());
  CHECK(plan.phases({{"a", 8, true}, {"c", 8, true}}, {}) == 0);
}
