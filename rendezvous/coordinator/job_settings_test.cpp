#include "rendezvous/coordinator/job_settings.h"

#include <doctest/doctest.h>

#include <limits>

#include "src/base/limits.h"

using namespace elastic;
using coordinator::JobSettings;
using coordinator::settings_of;
using protocol::JobRules;

TEST_CASE("the rules of the first node's message become those of forming and scaling up") {
  const JobSettings settings = settings_of({.terms = {.min_nodes = 2, .max_nodes = 8, .node_unit = 2},
                                            .rules = {.last_call_ms = 1,
                                                      .join_timeout_ms = 2,
                                                      .replacement_grace_ms = 3,
                                                      .scale_up = JobRules::ScaleUp::kAfter,
                                                      .scale_up_after_ms = 4,
                                                      .replacement_wait_ms = 5},
                                            .check = {.only = true}});
  CHECK(settings.are_known);
  CHECK(settings.check.only);
  CHECK(settings.forming.min_nodes == 2);
  CHECK(settings.forming.max_nodes == 8);
  CHECK(settings.forming.node_unit == 2);
  CHECK(settings.forming.last_call_ms == 1);
  CHECK(settings.forming.join_timeout_ms == 2);
  CHECK(settings.forming.grace_ms == 3);
  CHECK(settings.forming.settle_ms == 4);
  CHECK(settings.forming.replacement_wait_ms == 5);
  CHECK(settings.scale_up == membership::ScaleUp{membership::ScaleUp::When::kAfter, 4});
  CHECK(!JobSettings{}.are_known);
}

TEST_CASE("times that no elastic-run would send are bounded") {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  const JobSettings settings =
      settings_of({.rules = {.last_call_ms = -1, .join_timeout_ms = kHuge, .replacement_wait_ms = kHuge}});
  CHECK(settings.rules.last_call_ms == 0);
  CHECK(settings.rules.join_timeout_ms == limits::kMaxTimeoutSeconds * 1000);
  CHECK(settings.forming.replacement_wait_ms == limits::kMaxTimeoutSeconds * 1000);
}

TEST_CASE("with scale_up=never no later round has more nodes than the first") {
  JobSettings never =
      settings_of({.terms = {.min_nodes = 1, .max_nodes = 4}, .rules = {.scale_up = JobRules::ScaleUp::kNever}});
  CHECK(never.next_round().max_nodes == 4);
  never.first_size = 2;
  CHECK(never.next_round().max_nodes == 2);
  JobSettings now =
      settings_of({.terms = {.min_nodes = 1, .max_nodes = 4}, .rules = {.scale_up = JobRules::ScaleUp::kNow}});
  now.first_size = 2;
  CHECK(now.next_round().max_nodes == 4);
}

TEST_CASE("the most nodes of a job are a multiple of the unit") {
  const JobSettings settings = settings_of({.terms = {.min_nodes = 2, .max_nodes = 7, .node_unit = 2}});
  CHECK(settings.is_most(6));
  CHECK(!settings.is_most(4));
  CHECK(!settings.is_most(7));
}

TEST_CASE("the budgets of a new job are those of its options, unspent") {
  const coordinator::JobBudgets budgets =
      settings_of({.terms = {.min_nodes = 1, .max_nodes = 2, .max_restarts = 3}, .rules = {.job_losses = 1}}).budgets;
  CHECK(budgets.restarts.limit() == 3);
  CHECK(budgets.restarts.used() == 0);
  CHECK(budgets.losses.losses() == 0);
  coordinator::LossBudget losses = budgets.losses;
  losses.count_loss();
  CHECK(!losses.spent());
  losses.count_loss();
  CHECK(losses.spent());
}
