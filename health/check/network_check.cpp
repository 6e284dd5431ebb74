#include "health/check/network_check.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "health/gpu/gpu_versions.h"
#include "health/host/judge_host.h"
#include "health/messages/messages.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

// What the two nodes of a test report of it.
struct BothEnds {
  std::optional<PairResult> low = {};
  std::optional<PairResult> high = {};
};

PairHealth pair_health(int low, int high, int stage, const BothEnds& both) {
  PairHealth pair{.low = low, .high = high, .stage = stage};
  pair.passed = both.low && both.high && both.low->ms && both.high->ms;
  if (pair.passed) pair.ms = std::max(*both.low->ms, *both.high->ms);
  if (pair.passed && both.low->gpu_ms && both.high->gpu_ms) {
    pair.gpu_ms = std::max(*both.low->gpu_ms, *both.high->gpu_ms);
    pair.gpu_ranks = both.low->gpu_ranks;
    pair.gpu_bytes = both.low->gpu_bytes;
    pair.gpu_latency_us = both.low->gpu_latency_us;
  }
  for (const auto& end : {both.low, both.high}) {
    if (!end) continue;
    if (end->latency_us) pair.latency_us = std::min(*end->latency_us, pair.latency_us.value_or(*end->latency_us));
    if (!pair.passed && pair.why_not.empty()) pair.why_not = end->why_not;
  }
  if (both.low && both.low->clock_ms) pair.clock_ms = both.low->clock_ms;
  if (!pair.passed && pair.why_not.empty()) pair.why_not = format("node {} reported no result", both.low ? high : low);
  return pair;
}

// How the all-gather over NCCL went in a test. The reason of a failure is written into `pair`.
Gathering gathering_of(const BothEnds& both, PairHealth& pair) {
  if (!pair.passed) return Gathering::kNone;
  Gathering out = pair.gpu_ms ? Gathering::kPassed : Gathering::kNone;
  for (const auto& end : {both.low, both.high}) {
    if (!end->gpu_failure) continue;
    if (out != Gathering::kDefect) out = end->gpu_failure->is_defect ? Gathering::kDefect : Gathering::kFailed;
    if (pair.gpu_why_not.empty()) pair.gpu_why_not = end->gpu_failure->why;
  }
  const bool failed = out == Gathering::kFailed || out == Gathering::kDefect;
  if (failed && pair.gpu_why_not.empty()) pair.gpu_why_not = "neither node gives a reason";
  return out;
}

// The remedy if the GPU test itself may be at fault.
constexpr const char* kWithoutGpus = "if training works, set ELASTIC_RUN_PROBE_GPUS=off";

// How many GPUs the other node uses if both nodes can run an all-gather and have the same NCCL version; 0 otherwise,
// since other versions cannot talk to each other.
int gpus_to_meet(const SelfResult& self, const SelfResult& other) {
  const auto gathers = [](const SelfResult& one) {
    return one.gpu && one.gpu_figures && !one.gpu_failure ? one.gpu_figures->gathers : 0;
  };
  return gathers(self) > 0 && gathers(other) > 0 && self.gpu->nccl == other.gpu->nccl ? gathers(other) : 0;
}

// Where a node finds its partner.
PairOrder order_to_meet(int with, int after, const CheckNode& node, const SelfResult& self) {
  PairOrder order{.with = with, .name = node.address, .port = self.port, .key = self.key, .after = after};
  order.master_port = self.master_port;
  order.local_world_size = node.local_world_size;
  order.at = split(node.addresses, ' ');
  if (node.addresses.empty()) order.at = {"127.0.0.1", "::1"};
  return order;
}

std::string unreadable(const std::string& text) {
  return format("its answer to the check cannot be read: {}", printable(text.substr(0, 80)));
}

// The result of the ring. If it failed, the reason is that of the first member that failed by itself, else that of the
// first that failed. Nothing if there was no ring.
std::optional<AllGather> all_gather_of(const CheckResults& results) {
  AllGather out;
  double slowest_ms = 0;
  bool is_own = false;
  for (std::size_t node = 0; node < results.size(); ++node) {
    const auto read = read_check_result(kRingPhase, results[node]);
    if (read && std::holds_alternative<PairResults>(*read)) continue;  // the node was not in the ring
    const RingResult result = read ? std::get<RingResult>(*read) : RingResult{.why_not = unreadable(results[node])};
    ++out.nodes;
    if (result.ms) {
      slowest_ms = std::max(slowest_ms, *result.ms);
    } else if (out.why_not.empty() || (!is_own && !result.for_others)) {
      is_own = !result.for_others;
      out.why_not = format("node {}: {}", node, result.why_not.empty() ? "it reported no result" : result.why_not);
    }
  }
  if (out.nodes == 0) return {};
  if (out.why_not.empty()) out.ms = slowest_ms;
  return out;
}

}  // namespace

// The results of the phases so far.
struct NetworkCheck::Known {
  std::vector<SelfResult> selves;    // by node rank
  std::vector<NodeFigures> figures;  // by node rank
  std::vector<PairTest> tests;       // of the stages so far, in order
  std::vector<PairHealth> pairs;     // the same tests, with all that nodes report of them
  Racks racks;                       // by node rank
  bool is_judged_by_gpus = false;    // the tests of pairs are compared by their NCCL times

  void make_unhealthy(std::size_t node, std::string why) {
    if (std::exchange(figures[node].is_fit_by_itself, false)) figures[node].why_not = std::move(why);
  }

  // Adds one warning to the findings of all these nodes.
  void warn(const std::set<int>& nodes, const std::string& what) {
    for (const int node : nodes) {
      selves[static_cast<std::size_t>(node)].findings.push_back(
          {.severity = Severity::kWarning, .what = what + "; the tests over TCP decide", .remedy = kWithoutGpus});
    }
  }

  // A GPU test that failed makes its node unhealthy, unless it failed in the same step on all nodes.
  void judge_gpu_tests() {
    std::vector<GpuStanding> standings;
    for (std::size_t node = 0; node < selves.size(); ++node) {
      GpuStanding& standing = standings.emplace_back(GpuStanding{
          .says_nothing = !figures[node].is_fit_by_itself || (!selves[node].gpu_failure && !selves[node].gpu_figures)});
      if (selves[node].gpu_failure) standing.failed_in = static_cast<int>(selves[node].gpu_failure->step);
    }
    const bool is_everywhere = step_that_failed_everywhere(standings).has_value();
    std::set<int> excused;
    for (std::size_t node = 0; node < selves.size(); ++node) {
      if (!selves[node].gpu_failure || standings[node].says_nothing) continue;
      const std::string& why = selves[node].gpu_failure->why;
      if (is_everywhere)
        excused.insert(static_cast<int>(node));
      else
        make_unhealthy(node, selves.size() == 1 ? format("{}; {}", why, kWithoutGpus) : why);
    }
    if (excused.empty()) return;
    const GpuFailure& first = *selves[static_cast<std::size_t>(*excused.begin())].gpu_failure;
    warn(excused,
         format("the GPU test failed on all {} nodes{} (node {}: {})", excused.size(),
                excused.size() < selves.size() ? " that have no other fault" : "", *excused.begin(), first.why));
  }

  // A test whose all-gather over NCCL failed has failed, unless NCCL worked between no two nodes.
  void judge_gatherings(const std::vector<Gathering>& gatherings) {
    const bool is_everywhere = no_gathering_worked(gatherings);
    std::set<int> excused;
    const PairHealth* first = nullptr;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      PairHealth& pair = pairs[i];
      if (gatherings[i] != Gathering::kFailed && gatherings[i] != Gathering::kDefect) continue;
      if (is_everywhere) {
        if (first == nullptr) first = &pair;
        excused.insert({pair.low, pair.high});
      } else {
        pair.passed = false;
        pair.why_not = "the all-gather over NCCL failed: " + pair.gpu_why_not;
      }
    }
    if (excused.empty()) return;
    warn(excused, format("the all-gather over NCCL failed between all {} nodes that tried it (nodes {} and {}: {})",
                         excused.size(), first->low, first->high, first->gpu_why_not));
  }

  // GPU times are compared only if all nodes have them: the times of a node without GPUs are of another kind.
  void judge_by_gpus() {
    const auto has_tested = [](const SelfResult& self) {
      return self.gpu_figures && self.gpu_figures->product_ms && !self.gpu_failure;
    };
    if (std::ranges::all_of(selves, has_tested)) {
      for (std::size_t node = 0; node < selves.size(); ++node)
        figures[node].compute_ms = selves[node].gpu_figures->product_ms;
    }
    is_judged_by_gpus = std::ranges::any_of(pairs, &PairHealth::passed) &&
                        std::ranges::all_of(pairs, [](const PairHealth& pair) { return !pair.passed || pair.gpu_ms; });
  }

  std::vector<std::optional<double>> best_ms() const { return best_times(figures.size(), tests); }
  std::vector<StageFacts> facts() const {
    std::vector<StageFacts> out;
    for (const std::optional<double>& ms : best_ms()) {
      out.push_back({.is_fit_by_itself = figures[out.size()].is_fit_by_itself, .time_ms = ms});
    }
    return out;
  }
};

NetworkCheck::Known NetworkCheck::known(const std::vector<CheckNode>& checked,
                                        const std::vector<CheckResults>& results) const {
  const std::size_t nodes = checked.size();
  Known out{.selves = std::vector<SelfResult>(nodes),
            .figures = std::vector<NodeFigures>(nodes),
            .tests = {},
            .pairs = {},
            .racks = {},
            .is_judged_by_gpus = false};
  std::vector<std::string> groups;
  std::ranges::transform(checked, std::back_inserter(groups), &CheckNode::group);
  out.racks = racks_of(groups);
  std::vector<Gathering> gatherings;
  for (std::size_t phase = 0; phase < std::min<std::size_t>(results.size(), kRingPhase); ++phase) {
    std::map<std::pair<int, int>, BothEnds> said;
    for (std::size_t node = 0; node < nodes; ++node) {
      const std::string& text = results[phase].at(node);
      auto read = read_check_result(static_cast<std::uint32_t>(phase), text);
      if (!read) {
        out.make_unhealthy(node, unreadable(text));
        continue;
      }
      if (auto* self = std::get_if<SelfResult>(&*read)) {
        out.figures[node].compute_ms = self->compute_ms;
        if (!self->unhealthy.empty()) out.make_unhealthy(node, self->unhealthy);
        out.selves[node] = std::move(*self);
        continue;
      }
      const auto& answer = std::get<PairResults>(*read);
      const int rank = static_cast<int>(node);
      for (const Finding& finding : answer.findings) {
        if (finding.severity == Severity::kFatal) out.make_unhealthy(node, finding.what);
        out.selves[node].findings.push_back(finding);
      }
      for (const PairResult& test : answer.tests) {
        BothEnds& both = said[std::minmax(rank, test.with)];
        (rank < test.with ? both.low : both.high) = test;
      }
    }
    // GPU tests are judged before any later phase, whose results do not change which nodes were excused.
    if (phase == kSelfPhase) out.judge_gpu_tests();
    for (const auto& [pair, both] : said) {
      const bool are_nodes = pair.first != pair.second && pair.second < static_cast<int>(nodes);
      if (!are_nodes) continue;
      out.pairs.push_back(pair_health(pair.first, pair.second, static_cast<int>(phase), both));
      gatherings.push_back(gathering_of(both, out.pairs.back()));
    }
  }
  out.judge_gatherings(gatherings);
  out.judge_by_gpus();
  for (const PairHealth& found : out.pairs) {
    out.tests.push_back({.low = found.low,
                         .high = found.high,
                         .passed = found.passed,
                         .time_ms = out.is_judged_by_gpus ? found.gpu_ms.value_or(0) : found.ms,
                         .crosses = !are_near(out.racks, found.low, found.high)});
  }
  return out;
}

int NetworkCheck::phases(const std::vector<CheckNode>& nodes, const CheckRules& rules) const {
  if (std::ranges::all_of(nodes, &CheckNode::passed)) return 0;
  if (nodes.size() == 1) return 1;
  return static_cast<int>(kRingPhase) + (rules.measures_all ? 1 : 0);
}

std::vector<std::string> NetworkCheck::orders(std::uint32_t phase, const std::vector<CheckNode>& nodes,
                                              const std::vector<CheckResults>& earlier, const CheckRules& rules) const {
  if (phase == kSelfPhase) return std::vector<std::string>(nodes.size(), "{}");
  const Known so_far = known(nodes, earlier);
  if (phase == kRingPhase) return ring_orders(so_far, nodes, rules);
  const std::vector<StageFacts> facts = so_far.facts();
  std::vector<Group> groups;
  if (phase == kFirstPairsPhase) {
    // The first stage pairs the nodes that passed their own test with their neighbours.
    std::vector<int> fit;
    Racks racks;
    for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
      if (!facts[static_cast<std::size_t>(node)].is_fit_by_itself) continue;
      fit.push_back(node);
      racks.push_back(so_far.racks[static_cast<std::size_t>(node)]);
    }
    groups = neighbours(static_cast<int>(fit.size()), racks);
    for (Group& group : groups) {
      for (int& node : group) node = fit[static_cast<std::size_t>(node)];
    }
  } else if (phase == kSecondPairsPhase) {
    groups = second_stage(facts, so_far.tests, so_far.racks);
  } else {
    groups = third_stage(facts, so_far.tests, usual_exchange_ms(so_far.best_ms(), settings_), so_far.racks);
  }
  std::vector<PairOrders> all(nodes.size());
  for (std::size_t node = 0; node < all.size(); ++node) all[node].rank = static_cast<int>(node);
  const auto order = [&](int node, int with, int after) {
    const auto index = static_cast<std::size_t>(with);
    PairOrder test = order_to_meet(with, after, nodes[index], so_far.selves[index]);
    test.gpus = gpus_to_meet(so_far.selves[static_cast<std::size_t>(node)], so_far.selves[index]);
    all[static_cast<std::size_t>(node)].tests.push_back(std::move(test));
  };
  for (const Group& group : groups) {
    const auto tests = tests_of(group);
    for (std::size_t i = 0; i < tests.size(); ++i) {
      order(tests[i].first, tests[i].second, static_cast<int>(i));
      order(tests[i].second, tests[i].first, static_cast<int>(i));
    }
  }
  std::vector<std::string> texts;
  std::ranges::transform(all, std::back_inserter(texts), [](const PairOrders& orders) { return text_of(orders); });
  return texts;
}

std::vector<std::string> NetworkCheck::ring_orders(const Known& all, const std::vector<CheckNode>& nodes,
                                                   const CheckRules& rules) const {
  const Judgement found = judgement(all);
  std::vector<std::string> texts;
  std::vector<int> members;
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    texts.push_back(text_of(PairOrders{.rank = node}));  // nothing to do
    const NodeVerdict& verdict = found.nodes[static_cast<std::size_t>(node)];
    const bool trains = verdict.fitness == Fitness::kFit && !(verdict.is_straggler() && rules.excludes_stragglers);
    if (trains) members.push_back(node);
  }
  const int count = static_cast<int>(members.size());
  if (count < 2) return texts;
  const auto member = [&](int place) { return members[static_cast<std::size_t>((place + count) % count)]; };
  const auto neighbour = [&](int place, int turn) {
    const auto index = static_cast<std::size_t>(member(place));
    return order_to_meet(member(place), turn, nodes[index], all.selves[index]);
  };
  for (int place = 0; place < count; ++place) {
    texts[static_cast<std::size_t>(member(place))] =
        text_of(RingOrder{.rank = member(place),
                          .place = place,
                          .members = count,
                          .previous = neighbour(place - 1, ring_turn((place + count - 1) % count, count)),
                          .next = neighbour(place + 1, ring_turn(place, count))});
  }
  return texts;
}

JudgeSettings NetworkCheck::settings_for(const Known& all) const {
  JudgeSettings settings = settings_;
  if (all.is_judged_by_gpus) settings.exchange = "all-gather over NCCL";
  return settings;
}

// Adds to the verdict of each faulty node why its last test failed, which the judge does not know.
Judgement NetworkCheck::judgement(const Known& all) const {
  Judgement found = judge(all.figures, all.tests, settings_for(all));
  for (std::size_t i = 0; i < found.nodes.size(); ++i) {
    if (found.nodes[i].fitness == Fitness::kFit || !all.figures[i].is_fit_by_itself) continue;
    const int node = static_cast<int>(i);
    const auto last = std::ranges::find_if(all.pairs.rbegin(), all.pairs.rend(), [node](const PairHealth& pair) {
      return !pair.passed && (pair.low == node || pair.high == node);
    });
    if (last == all.pairs.rend()) continue;
    found.nodes[i].why +=
        format(" (with node {}: {})", last->low == node ? last->high : last->low, printable(last->why_not));
  }
  return found;
}

Judgement NetworkCheck::judgement(const std::vector<CheckNode>& nodes, const std::vector<CheckResults>& results) const {
  return judgement(known(nodes, results));
}

std::vector<CheckPlan::Unhealthy> NetworkCheck::unhealthy(const std::vector<CheckNode>& nodes,
                                                          const std::vector<CheckResults>& results) const {
  std::vector<Unhealthy> out;
  const Judgement found = judgement(nodes, results);
  for (std::size_t i = 0; i < found.nodes.size(); ++i) {
    const NodeVerdict& node = found.nodes[i];
    if (node.fitness == Fitness::kFit && !node.is_straggler()) continue;
    const auto kind = node.fitness == Fitness::kFaulty         ? Unhealthy::Kind::kFaulty
                      : node.fitness == Fitness::kUndetermined ? Unhealthy::Kind::kUndetermined
                                                               : Unhealthy::Kind::kStraggler;
    out.push_back({static_cast<int>(i), node.why, kind});
  }
  for (const PairTest& link : found.bad_links) {
    out.push_back({link.low, format("its link to {} is bad", nodes[static_cast<std::size_t>(link.high)].address),
                   Unhealthy::Kind::kLink});
  }
  std::ranges::stable_sort(out, {}, &Unhealthy::node_rank);
  return out;
}

HealthReport NetworkCheck::report(const std::vector<CheckNode>& nodes, const std::vector<CheckResults>& results) const {
  Known all = known(nodes, results);
  Judgement found = judgement(all);
  HealthReport out{.pairs = std::move(all.pairs),
                   .bad_links = std::move(found.bad_links),
                   .slow_links = std::move(found.slow_links),
                   .by_nccl = all.is_judged_by_gpus,
                   .settings = settings_for(all)};
  if (results.size() > kRingPhase) out.all_gather = all_gather_of(results[kRingPhase]);
  // How much an external probe exchanges is not known.
  if (std::ranges::any_of(all.selves, [](const SelfResult& self) { return self.master_port != 0; }))
    out.exchange_bytes = 0;
  std::vector<ClockOffset> offsets;
  for (const PairHealth& pair : out.pairs) {
    if (pair.clock_ms) offsets.push_back({.of = pair.high, .against = pair.low, .ahead_ms = *pair.clock_ms});
  }
  std::vector<NodeGpus> gpus;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (all.selves[i].gpu) gpus.push_back({.node = static_cast<int>(i), .versions = *all.selves[i].gpu});
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    out.nodes.push_back({.rank = static_cast<int>(i),
                         .name = nodes[i].address,
                         .local_world_size = nodes[i].local_world_size,
                         .compute_ms = all.figures[i].compute_ms,
                         .memory_gbps = all.selves[i].memory_gbps,
                         .gpu = std::move(all.selves[i].gpu),
                         .gpu_figures = all.selves[i].gpu_figures,
                         .findings = std::move(all.selves[i].findings),
                         .verdict = std::move(found.nodes[i])});
  }
  for (auto findings : {clock_findings(offsets), version_findings(gpus)}) {
    for (NodeFinding& finding : findings) {
      out.nodes[static_cast<std::size_t>(finding.node)].findings.push_back(std::move(finding.finding));
    }
  }
  return out;
}

status::Check check_figures(const HealthReport& report) {
  status::Check check{.round = report.round, .bad_links = static_cast<std::int64_t>(report.bad_links.size())};
  for (const NodeHealth& node : report.nodes) {
    switch (standing_of(node)) {
      case Standing::kFit: ++check.fit; break;
      case Standing::kSlow: ++check.slow; break;
      case Standing::kFaulty: ++check.faulty; break;
      case Standing::kUndetermined: ++check.undetermined; break;
    }
  }
  check.seconds = took_ms(report).value_or(0) / 1000;
  for (const PairHealth& pair : report.pairs) {
    const auto gbps = busbw_gbps(report, pair, judged_way(report));
    if (!gbps) continue;
    const double bytes = *gbps * 1e9;
    check.slowest_busbw_bytes = std::min(check.slowest_busbw_bytes.value_or(bytes), bytes);
  }
  return check;
}

}  // namespace elastic::health
