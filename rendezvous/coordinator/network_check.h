#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "health/judge/judge.h"
#include "health/report/health_report.h"
#include "rendezvous/coordinator/check_plan.h"

namespace elastic::coordinator {

// The check of --network-check: each node looks at itself, then meets others in up to three stages (health/judge). The
// tests of a group follow each other in the same order on each of its nodes, so that none waits for one who waits for
// it. Where the rules say so, all that are fit then make a ring and measure an all-gather; nobody is judged by it.
class NetworkCheck : public CheckPlan {
 public:
  explicit NetworkCheck(health::JudgeSettings settings = {}) : settings_(settings) {}

  int phases(const std::vector<CheckNode>& nodes, const protocol::CheckRules& rules) const override;
  std::vector<std::string> orders(std::uint32_t phase, const std::vector<CheckNode>& nodes,
                                  const std::vector<CheckResults>& earlier,
                                  const protocol::CheckRules& rules) const override;
  std::vector<Unfit> unfit(const std::vector<CheckNode>& nodes,
                           const std::vector<CheckResults>& results) const override;
  // What unfit() follows from.
  health::Judgement judgement(const std::vector<CheckNode>& nodes, const std::vector<CheckResults>& results) const;
  // The same with all that was said; job, round and times are left to who knows them.
  health::HealthReport report(const std::vector<CheckNode>& nodes, const std::vector<CheckResults>& results) const;

 private:
  struct Known;
  health::Judgement judgement(const Known& all) const;
  health::JudgeSettings settings_for(const Known& all) const;
  Known known(const std::vector<CheckNode>& nodes, const std::vector<CheckResults>& results) const;
  std::vector<std::string> ring_orders(const Known& all, const std::vector<CheckNode>& nodes,
                                       const protocol::CheckRules& rules) const;

  health::JudgeSettings settings_;
};

}  // namespace elastic::coordinator
