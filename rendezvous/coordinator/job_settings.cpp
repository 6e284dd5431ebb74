#include "rendezvous/coordinator/job_settings.h"

#include <algorithm>
#include <cstdint>

#include "src/base/limits.h"

namespace elastic::coordinator {

using protocol::JobRules;

namespace {

std::int64_t bounded(std::int64_t time_ms) {
  return std::clamp<std::int64_t>(time_ms, 0, limits::kMaxTimeoutSeconds * 1000);
}

membership::ScaleUp scale_up_of(const JobRules& rules) {
  using When = membership::ScaleUp::When;
  switch (rules.scale_up) {
    case JobRules::ScaleUp::kNow: return {When::kNow, 0};
    case JobRules::ScaleUp::kAfter: return {When::kAfter, rules.scale_up_after_ms};
    case JobRules::ScaleUp::kOnRestart: return {When::kOnRestart, 0};
    case JobRules::ScaleUp::kNever: return {When::kNever, 0};
  }
  return {};
}

JobBudgets budgets_of(const protocol::JobTerms& terms, const JobRules& rules) {
  return {.restarts = RestartBudget(terms.max_restarts),
          .losses = LossBudget(with_default_bound({.per_node = rules.node_losses,
                                                   .window_ms = rules.loss_window_ms,
                                                   .quarantine_ms = rules.quarantine_ms,
                                                   .per_job = rules.job_losses},
                                                  terms.max_nodes))};
}

}  // namespace

membership::FormingRules JobSettings::next_round() const {
  membership::FormingRules next = forming;
  next.max_nodes = membership::size_limit(scale_up, first_size, forming);
  return next;
}

bool JobSettings::is_most(int nodes) const { return nodes == membership::round_size(terms.max_nodes, forming); }

JobSettings settings_of(const protocol::JobTerms& terms, const JobRules& given, const health::CheckRules& check) {
  JobSettings out{.are_known = true, .terms = terms, .rules = given, .check = check};
  JobRules& rules = out.rules;
  for (std::int64_t* time_ms : {&rules.last_call_ms, &rules.join_timeout_ms, &rules.replacement_grace_ms,
                                &rules.scale_up_after_ms, &rules.loss_window_ms, &rules.quarantine_ms}) {
    *time_ms = bounded(*time_ms);
  }
  for (std::optional<std::int64_t>* time_ms :
       {&rules.replacement_wait_ms, &rules.hang_timeout_ms, &rules.hang_first_timeout_ms}) {
    if (*time_ms) *time_ms = bounded(**time_ms);
  }
  for (hang::SectionLimit& section : rules.hang_sections) section.limit_ms = bounded(section.limit_ms);
  if (rules.hang_restarts) rules.hang_restarts = std::clamp<int>(*rules.hang_restarts, 0, limits::kMaxRestarts);
  out.forming = {.min_nodes = out.terms.min_nodes,
                 .max_nodes = out.terms.max_nodes,
                 .node_unit = out.terms.node_unit,
                 .last_call_ms = rules.last_call_ms,
                 .join_timeout_ms = rules.join_timeout_ms,
                 .replacement_wait_ms = rules.replacement_wait_ms,
                 .grace_ms = rules.replacement_grace_ms,
                 .settle_ms = rules.scale_up_after_ms};
  out.scale_up = scale_up_of(rules);
  out.budgets = budgets_of(out.terms, rules);
  return out;
}

JobSettings settings_of(const protocol::NodeJoins& message) {
  return settings_of(message.terms, message.rules, message.check);
}

}  // namespace elastic::coordinator
