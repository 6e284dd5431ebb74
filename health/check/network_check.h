#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "health/check/check_plan.h"
#include "health/judge/judge.h"
#include "health/report/health_report.h"
#include "src/status/snapshot.h"

namespace elastic::health {

// The check of --network-check: each node tests itself, then exchanges data with others in up to three stages
// (health/judge). The nodes of a group make their tests in one order, so that no two nodes wait for each other. If the
// rules say so, all fit nodes then form a ring and measure an all-gather, which no node is judged by.
class NetworkCheck : public CheckPlan {
 public:
  explicit NetworkCheck(JudgeSettings settings = {}) : settings_(settings) {}

  int phases(const std::vector<CheckNode>& nodes, const CheckRules& rules) const override;
  std::vector<std::string> orders(std::uint32_t phase, const std::vector<CheckNode>& nodes,
                                  const std::vector<CheckResults>& earlier, const CheckRules& rules) const override;
  std::vector<Unhealthy> unhealthy(const std::vector<CheckNode>& nodes,
                                   const std::vector<CheckResults>& results) const override;
  // The judgement that unhealthy() lists.
  Judgement judgement(const std::vector<CheckNode>& nodes, const std::vector<CheckResults>& results) const;
  // The judgement with all measurements. The caller adds the job, the round and the times.
  HealthReport report(const std::vector<CheckNode>& nodes, const std::vector<CheckResults>& results) const;

 private:
  struct Known;
  Judgement judgement(const Known& all) const;
  JudgeSettings settings_for(const Known& all) const;
  Known known(const std::vector<CheckNode>& nodes, const std::vector<CheckResults>& results) const;
  std::vector<std::string> ring_orders(const Known& all, const std::vector<CheckNode>& nodes,
                                       const CheckRules& rules) const;

  JudgeSettings settings_;
};

// The figures of a check that /status and /metrics report.
status::Check check_figures(const HealthReport& report);

}  // namespace elastic::health
