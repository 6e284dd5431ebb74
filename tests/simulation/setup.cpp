#include "tests/simulation/setup.h"

#include <algorithm>

#include "rendezvous/protocol/lease.h"
#include "src/base/text.h"

namespace elastic::simulation {

namespace {

using ScaleUp = protocol::JobRules::ScaleUp;

protocol::JobTerms terms_of(Random& random, int nodes) {
  protocol::JobTerms terms;
  terms.node_unit = random.chance(70) ? 1 : random.number(2, std::max(2, std::min(4, nodes)));
  const int units = std::max(1, nodes / terms.node_unit);
  const int most = random.chance(25) ? std::max(1, units - random.number(0, 2)) : units;  // the other nodes stand by
  const int least = random.number(1, most);
  terms.max_nodes = std::min(most * terms.node_unit + (random.chance(10) ? terms.node_unit - 1 : 0), nodes);
  terms.max_nodes = std::max(terms.max_nodes, most * terms.node_unit);
  terms.min_nodes = (least - 1) * terms.node_unit + random.number(1, terms.node_unit);
  terms.max_restarts = random.number(0, 5);
  return terms;
}

health::CheckRules check_of(Random& random, int phases) {
  using When = health::CheckRules::When;
  if (phases == 0) return {};
  return {.when = static_cast<When>(random.number(static_cast<int>(When::kFirst), static_cast<int>(When::kAlways))),
          .excludes_stragglers = random.chance(50)};
}

protocol::JobRules rules_of(Random& random) {
  protocol::JobRules rules;
  rules.last_call_ms = random.range(100, 2000);
  rules.join_timeout_ms = random.range(4, 15) * 1000;
  rules.replacement_grace_ms = random.chance(30) ? random.range(100, 2000) : 0;
  const ScaleUp kinds[] = {ScaleUp::kNow, ScaleUp::kAfter, ScaleUp::kAfter, ScaleUp::kOnRestart, ScaleUp::kNever};
  rules.scale_up = kinds[random.range(0, 4)];
  rules.scale_up_after_ms = random.range(50, 1000);
  rules.node_losses = random.chance(30) ? -1 : random.number(1, 4);
  rules.loss_window_ms = random.range(5, 60) * 1000;
  rules.quarantine_ms = random.range(1, 6) * 1000;
  rules.job_losses = random.chance(60) ? 0 : random.chance(50) ? -1 : random.number(1, 6);
  return rules;
}

int node_count(Random& random) {
  if (random.chance(3)) return random.number(9, 30);
  return random.chance(60) ? random.number(2, 4) : random.number(1, 8);
}

// Any node may be the coordinator's host, so no two of their clocks differ by more than 1 %.
void let_nodes_succeed(Setup& setup, Random random, bool by_file) {
  const bool at_node0 = setup.jobs == 1 && random.chance(60);
  setup.failover = by_file    ? Setup::Failover::kByFile
                   : at_node0 ? Setup::Failover::kFromNode0
                              : Setup::Failover::kFromAlone;
  setup.hosted = false;
  setup.peer_ports_are_shut = random.chance(4);
  setup.lists_hosts = setup.jobs == 1 && !by_file && !setup.peer_ports_are_shut && random.chance(40);
  for (NodeSetup& node : setup.nodes) {
    node.hosts_coordinator = false;
    node.rules.failover = protocol::JobRules::Failover::kMajority;
    if (random.chance(80)) node.rejoin_ms += 2 * setup.loss_timeout_ms;
    node.clock_error = std::clamp(node.clock_error / 2, -49, 49);
  }
}

// Rounds take long enough to hang, and limits are short enough to be over. A random stream of its own.
void let_rounds_hang(Setup& setup, Random random) {
  if (!random.chance(10)) return;
  HangSetup& hangs = setup.hangs.emplace();
  hangs.beat_ms = random.range(100, 600);
  hangs.all_speak = random.chance(40);
  hangs.percent = random.chance(85) ? random.number(40, 100) : 0;
  hangs.partial_percent = random.chance(50) ? 0 : random.number(5, 60);
  hangs.late_percent = random.chance(50) ? 0 : random.number(5, 50);
  hangs.never_percent = random.chance(70) ? 0 : random.number(1, 30);
  setup.training_ms = random.range(1000, 4000);
  std::optional<Ms> timeout_ms, first_timeout_ms;
  if (random.chance(80)) timeout_ms = random.range(1500, 6000);
  if (random.chance(50)) first_timeout_ms = random.range(2000, 10'000);
  for (NodeSetup& node : setup.nodes) {
    node.rules.hang = protocol::JobRules::Hang::kReport;
    node.rules.hang_timeout_ms = timeout_ms;
    node.rules.hang_first_timeout_ms = first_timeout_ms;
  }
}

}  // namespace

Setup setup_of(std::uint64_t seed, int nodes) {
  Random random(seed, 1);
  Setup setup{.seed = seed};
  const int drawn = node_count(random);
  const int count = nodes > 0 ? nodes : drawn;
  setup.jobs = count >= 2 && random.chance(15) ? 2 : 1;
  setup.hosted = setup.jobs == 1 && random.chance(35);
  const Ms timeouts[] = {1000, 2500, 5000, 5000, 20'000};
  setup.loss_timeout_ms = timeouts[random.range(0, 4)];
  setup.longest_delay_ms = random.chance(80) ? random.range(0, 5) : random.range(5, 60);
  setup.user_timeout_ms = random.chance(60) ? random.range(2, 12) * 1000 : 0;
  setup.check_phases = random.chance(70) ? 0 : random.number(1, 2);
  setup.training_ms = random.chance(80) ? random.range(20, 400) : random.range(400, 3000);
  setup.stubborn_percent = random.chance(70) ? random.number(0, 10) : 60;
  setup.saving_percent = random.number(0, 40);
  setup.guardian_speaks = random.chance(60);
  const int first_of_second_job = setup.jobs == 2 ? random.number(1, count - 1) : count;
  for (int part = 0; part < setup.jobs; ++part) {
    const int from = part == 0 ? 0 : first_of_second_job;
    const int to = part == 0 ? first_of_second_job : count;
    const protocol::JobTerms terms = terms_of(random, to - from);
    const protocol::JobRules rules = rules_of(random);
    const health::CheckRules check = check_of(random, setup.check_phases);
    const bool claims = random.chance(25);
    const int workers = random.number(1, 4);
    const bool alike = random.chance(60);
    const Ms spread_ms = random.chance(60) ? 20 : random.range(20, 2000);
    const Ms shutdown_ms = random.chance(70) ? random.range(100, 800) : random.range(800, 3000);
    const Ms barrier_ms = random.chance(80) ? random.range(4, 20) * 1000 : random.range(100, 1000);
    for (int i = from; i < to; ++i) {
      NodeSetup node;
      node.job = part == 0 ? "alpha" : "beta";
      node.address = format("10.0.{}.{}", part, i + 1);
      node.workers = alike ? workers : random.number(1, 4);
      if (claims) node.claimed_rank = i - from;
      node.hosts_coordinator = setup.hosted && i == 0;
      node.fit = setup.check_phases == 0 || random.chance(90);
      node.slow = setup.check_phases > 0 && random.chance(10);
      node.starts_ms = random.range(0, spread_ms);
      node.terms = terms;
      node.rules = rules;
      node.check = check;
      node.shutdown_timeout_ms = shutdown_ms;
      node.exit_barrier_ms = barrier_ms;
      node.rejoin_ms = random.range(2, 5) * 1000;
      node.join_timeout_ms = rules.join_timeout_ms + random.range(2, 10) * 1000;
      node.clock_offset_ms = random.range(0, 1'000'000'000);
      node.clock_error = random.chance(50) ? random.number(-100, 100) : random.chance(50) ? -100 : 100;
      node.logs = random.chance(30);
      node.tells_crashes = seed % 3 == 0;
      setup.nodes.push_back(std::move(node));
    }
  }
  const bool by_file = Random(seed, 3).chance(25);
  if (by_file || Random(seed, 5).chance(40)) let_nodes_succeed(setup, Random(seed, 6), by_file);
  let_rounds_hang(setup, Random(seed, 21));
  return setup;
}

Setup plain_setup(std::uint64_t seed, int nodes) {
  Setup setup{.seed = seed};
  Random random(seed, 1);
  for (int i = 0; i < nodes; ++i) {
    NodeSetup node;
    node.job = "alpha";
    node.address = format("10.0.0.{}", i + 1);
    node.terms = {.min_nodes = nodes, .max_nodes = nodes, .max_restarts = 3};
    node.clock_offset_ms = random.range(0, 1'000'000'000);
    setup.nodes.push_back(std::move(node));
  }
  return setup;
}

std::string text(const Setup& setup) {
  const NodeSetup& first = setup.nodes.front();
  return format(
      "seed {}: {} nodes, {} {}, --nnodes={}:{} --node_unit={} --max-restarts={}, loss timeout {} ms, "
      "delay to {} ms, {} check phases, coordinator {}{}",
      setup.seed, setup.nodes.size(), setup.jobs, setup.jobs == 1 ? "job" : "jobs", first.terms.min_nodes,
      first.terms.max_nodes, first.terms.node_unit, first.terms.max_restarts, setup.loss_timeout_ms,
      setup.longest_delay_ms, setup.check_phases,
      setup.is_by_file()                              ? "by a file, with successors"
      : setup.peer_ports_are_shut                     ? "with successors, behind firewalls"
      : setup.failover == Setup::Failover::kFromNode0 ? "on node 0, with successors"
      : setup.failover == Setup::Failover::kFromAlone ? "alone, with successors"
      : setup.hosted                                  ? "on node 0"
                                                      : "alone",
      setup.hangs ? format(", progress each {} ms, {} % of the rounds hang, limit {} ms", setup.hangs->beat_ms,
                           setup.hangs->percent, first.rules.hang_timeout_ms.value_or(0))
                  : "");
}

Ms settling_bound_ms(const Setup& setup) {
  Ms bound_ms = 0;
  for (const NodeSetup& node : setup.nodes) {
    const protocol::JobRules& rules = node.rules;
    const Ms finding_ms =
        std::max(node.join_timeout_ms, node.rejoin_ms + setup.loss_timeout_ms);  // the coordinator, or that it is gone
    const Ms stopping_ms = node.shutdown_timeout_ms + 5000;                      // and SIGKILL, and what is stuck
    const Ms forming_ms =
        std::max(rules.join_timeout_ms, rules.last_call_ms + rules.replacement_grace_ms + rules.scale_up_after_ms);
    bound_ms = std::max(bound_ms, finding_ms + stopping_ms + forming_ms + node.exit_barrier_ms);
  }
  // Nodes and connections that were lost during the faults are noticed, and unanswered introductions time out.
  return bound_ms + 3 * setup.loss_timeout_ms + 10'000;
}

}  // namespace elastic::simulation
