#include "health/check/network_check.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "health/messages/messages_test_support.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::health;

namespace {

// Nodes that answer a check; some let every exchange fail, some are slow, some answer otherwise.
struct Cluster {
  explicit Cluster(int nodes) {
    for (int node = 0; node < nodes; ++node) {
      list.push_back(
          {.address = format("node{}", node), .local_world_size = 8, .addresses = format("10.0.0.{}", node + 1)});
    }
  }

  std::string answer(std::uint32_t phase, int node, const std::string& order) const {
    if (const auto said = says.find({phase, node}); said != says.end()) return said->second;
    if (phase == 0) {
      return text_of(SelfResult{.port = static_cast<std::uint16_t>(4000 + node),
                                .key = format("key{}", node),
                                .compute_ms = slow.contains(node) ? 30 : 3});
    }
    if (const auto ring = read_ring_order(order)) {
      CHECK(ring->rank == node);
      if (ring_fails.contains(node))
        return text_of(RingResult{.why_not = "no answer", .for_others = ring_fails.at(node)});
      return text_of(RingResult{.ms = 20.0 + node});
    }
    PairResults results;
    const auto orders = read_pair_orders(order);
    REQUIRE(orders);
    CHECK(orders->rank == node);
    for (const PairOrder& test : orders->tests) {
      CHECK(test.name == format("node{}", test.with));
      CHECK(test.at == std::vector<std::string>{format("10.0.0.{}", test.with + 1)});
      CHECK(test.port == 4000 + test.with);
      CHECK(test.key == format("key{}", test.with));
      const bool fails =
          faulty.contains(node) || faulty.contains(test.with) || cut.contains(std::minmax(node, test.with));
      results.tests.push_back(
          {.with = test.with, .ms = fails ? std::nullopt : std::optional(5.0), .why_not = fails ? "no answer" : ""});
    }
    return text_of(results);
  }
  // All phases; what each was ordered is in `ordered`.
  std::vector<CheckResults> run() {
    std::vector<CheckResults> results;
    const auto phases = static_cast<std::uint32_t>(plan.phases(list, rules));
    for (std::uint32_t phase = 0; phase < phases; ++phase) {
      ordered.push_back(plan.orders(phase, list, results, rules));
      REQUIRE(ordered.back().size() == list.size());
      CheckResults answers;
      for (std::size_t node = 0; node < list.size(); ++node) {
        answers.push_back(answer(phase, static_cast<int>(node), ordered.back()[node]));
      }
      results.push_back(std::move(answers));
    }
    return results;
  }
  std::set<int> unhealthy() {
    std::set<int> out;
    for (const CheckPlan::Unhealthy& one : plan.unhealthy(list, run())) out.insert(one.node_rank);
    return out;
  }

  std::vector<CheckNode> list;
  std::set<int> faulty = {};
  std::set<int> slow = {};
  std::set<std::pair<int, int>> cut = {};
  std::map<int, bool> ring_fails = {};  // in the all-gather, whether for others
  CheckRules rules = {};
  std::map<std::pair<std::uint32_t, int>, std::string> says = {};  // instead, by phase and node
  NetworkCheck plan = NetworkCheck();
  std::vector<std::vector<std::string>> ordered = {};
};

using Ints = std::set<int>;

}  // namespace

TEST_CASE("a cluster in which all is well passes four phases, of which the last has nothing to do") {
  Cluster cluster(6);
  CHECK(cluster.unhealthy().empty());
  REQUIRE(cluster.ordered.size() == 4);
  for (int node = 0; node < 6; ++node) {
    CHECK(read_pair_orders(cluster.ordered[1][static_cast<std::size_t>(node)])->tests.at(0).with == (node ^ 1));
    CHECK(read_pair_orders(cluster.ordered[2][static_cast<std::size_t>(node)])->tests.size() == 1);
    CHECK(read_pair_orders(cluster.ordered[3][static_cast<std::size_t>(node)])->tests.empty());
  }
}

TEST_CASE("each faulty node is named, whoever it met, and so is one that says itself that it is unhealthy") {
  for (int nodes = 3; nodes < 12; ++nodes) {
    for (int bad = 0; bad < nodes; ++bad) {
      CAPTURE(nodes);
      CAPTURE(bad);
      Cluster cluster(nodes);
      cluster.faulty = {bad};
      CHECK(cluster.unhealthy() == Ints{bad});
      Cluster ill(nodes);
      ill.says[{0, bad}] = text_of(SelfResult{.unhealthy = "its product was wrong"});
      CHECK(ill.unhealthy() == Ints{bad});
      for (std::size_t phase = 1; phase < 4; ++phase) {
        CHECK(read_pair_orders(ill.ordered[phase][static_cast<std::size_t>(bad)])->tests.empty());
      }
    }
  }
}

TEST_CASE("of two nodes that cannot reach each other nobody knows which it is") {
  Cluster cluster(2);
  cluster.faulty = {1};
  const auto results = cluster.run();
  const auto unhealthy = cluster.plan.unhealthy(cluster.list, results);
  REQUIRE(unhealthy.size() == 2);
  CHECK(unhealthy[0].kind == CheckPlan::Unhealthy::Kind::kUndetermined);
  CHECK(unhealthy[1].why ==
        "its exchange failed with node 0, none of which is known to be good (with node 0: no answer)");
}

TEST_CASE("a node alone looks at itself only, and nodes that have all passed before are not checked again") {
  Cluster one(1);
  CHECK(one.unhealthy().empty());
  CHECK(one.ordered.size() == 1);
  for (CheckNode& node : one.list) node.passed = true;
  CHECK(one.plan.phases(one.list, one.rules) == 0);
  Cluster grown(4);
  for (std::size_t node = 0; node < 3; ++node) grown.list[node].passed = true;
  CHECK(grown.plan.phases(grown.list, grown.rules) == 4);
}

TEST_CASE("what cannot be read makes its node unhealthy, and what nobody was asked for is of no account") {
  for (const std::uint32_t phase : {0U, 1U, 2U}) {
    CAPTURE(phase);
    Cluster cluster(5);
    cluster.says[{phase, 2}] = "<html>";
    const auto results = cluster.run();
    const auto unhealthy = cluster.plan.unhealthy(cluster.list, results);
    REQUIRE(unhealthy.size() == 1);
    CHECK(unhealthy[0].node_rank == 2);
    CHECK(unhealthy[0].why == "its answer to the check cannot be read: <html>");
  }
  Cluster cluster(4);
  cluster.says[{1, 0}] =
      text_of(PairResults{.tests = {{.with = 1, .ms = 5}, {.with = 0, .ms = 1}, {.with = 9, .ms = 1}}});
  CHECK(cluster.unhealthy().empty());
}

TEST_CASE("a node that claims success where the other end failed has not passed") {
  Cluster cluster(4);
  cluster.faulty = {1};
  cluster.says[{1, 1}] = text_of(PairResults{.tests = {{.with = 0, .ms = 1}}});
  CHECK(cluster.unhealthy() == Ints{1});
}

TEST_CASE("both ends of every test are ordered to make it, and no two nodes wait for each other in a ring") {
  for (const int nodes : {2, 3, 5, 9, 17}) {
    Cluster cluster(nodes);
    cluster.faulty = {0, 2};
    cluster.run();
    for (std::size_t phase = 1; phase < cluster.ordered.size(); ++phase) {
      std::vector<std::vector<PairOrder>> left;
      for (const std::string& order : cluster.ordered[phase]) left.push_back(read_pair_orders(order)->tests);
      // Whoever is first with each other makes that test; all must be made in the end.
      for (bool gets_on = true; gets_on;) {
        gets_on = false;
        for (std::size_t node = 0; node < left.size(); ++node) {
          if (left[node].empty()) continue;
          auto& other = left[static_cast<std::size_t>(left[node].front().with)];
          if (other.empty() || other.front().with != static_cast<int>(node)) continue;
          left[node].erase(left[node].begin());
          other.erase(other.begin());
          gets_on = true;
        }
      }
      for (const auto& orders : left) CHECK(orders.empty());
    }
  }
}

TEST_CASE("a straggler is named as one") {
  Cluster cluster(6);
  cluster.slow = {4};
  const auto results = cluster.run();
  const auto unhealthy = cluster.plan.unhealthy(cluster.list, results);
  REQUIRE(unhealthy.size() == 1);
  CHECK(unhealthy[0].node_rank == 4);
  CHECK(unhealthy[0].kind == CheckPlan::Unhealthy::Kind::kStraggler);
}

TEST_CASE("a bad link between good nodes is told, for the lower of them") {
  Cluster cluster(3);
  cluster.cut = {{1, 2}};
  const auto unhealthy = cluster.plan.unhealthy(cluster.list, cluster.run());
  REQUIRE(unhealthy.size() == 1);
  CHECK(unhealthy[0].node_rank == 1);
  CHECK(unhealthy[0].kind == CheckPlan::Unhealthy::Kind::kLink);
  CHECK(unhealthy[0].why == "its link to " + cluster.list[2].address + " is bad");
}

TEST_CASE("nodes of one rack meet each other first") {
  Cluster cluster(4);
  for (const std::size_t node : {0U, 2U}) cluster.list[node].group = "left";
  for (const std::size_t node : {1U, 3U}) cluster.list[node].group = "right";
  const auto report = cluster.plan.report(cluster.list, cluster.run());
  REQUIRE(report.pairs.size() >= 4);
  CHECK(report.pairs[0].low == 0);
  CHECK(report.pairs[0].high == 2);
  CHECK(report.pairs[1].low == 1);
  CHECK(report.pairs[1].high == 3);
  for (std::size_t i = 2; i < report.pairs.size(); ++i) CHECK(report.pairs[i].low % 2 != report.pairs[i].high % 2);
}

TEST_CASE(
    "where that is asked for, all that are fit make a ring in a phase of its own, by rank, and slow ones if they "
    "train") {
  for (const bool excludes : {false, true}) {
    Cluster cluster(6);
    cluster.rules = {.excludes_stragglers = excludes, .measures_all = true};
    cluster.faulty = {2};
    cluster.slow = {4};
    const auto results = cluster.run();
    REQUIRE(cluster.ordered.size() == 5);
    const std::vector<int> members = excludes ? std::vector{0, 1, 3, 5} : std::vector{0, 1, 3, 4, 5};
    const std::size_t count = members.size();
    for (std::size_t place = 0; place < count; ++place) {
      const int before = members[(place + count - 1) % count], after = members[(place + 1) % count];
      const auto order = read_ring_order(cluster.ordered[4][static_cast<std::size_t>(members[place])]);
      REQUIRE(order);
      CHECK(order->rank == members[place]);
      CHECK(order->place == static_cast<int>(place));
      CHECK(order->members == static_cast<int>(count));
      CHECK(order->next == PairOrder{.with = after,
                                     .name = format("node{}", after),
                                     .at = {format("10.0.0.{}", after + 1)},
                                     .port = static_cast<std::uint16_t>(4000 + after),
                                     .key = format("key{}", after),
                                     .after = order->next.after});
      CHECK(order->previous.with == before);
      CHECK(order->previous.key == format("key{}", before));
      CHECK(order->previous.after != order->next.after);
      CHECK(read_ring_order(cluster.ordered[4][static_cast<std::size_t>(after)])->previous.after == order->next.after);
    }
    for (const int idle : excludes ? std::vector{2, 4} : std::vector{2}) {
      CHECK(cluster.ordered[4][static_cast<std::size_t>(idle)] == text_of(PairOrders{.rank = idle}));
    }
    const HealthReport report = cluster.plan.report(cluster.list, results);
    REQUIRE(report.all_gather);
    CHECK(report.all_gather->nodes == static_cast<int>(count));
    CHECK(report.all_gather->ms == 25.0);
    CHECK(report.all_gather->why_not == "");
    CHECK(report.pairs.back().stage < 4);
    CHECK(cluster.unhealthy() == Ints{2, 4});
  }
}

TEST_CASE("nobody is left out for an all-gather that fails, and who failed by itself says why") {
  Cluster cluster(4);
  cluster.rules.measures_all = true;
  const auto why_not = [&] {
    cluster.ordered.clear();
    const auto results = cluster.run();
    CHECK(cluster.plan.unhealthy(cluster.list, results).empty());
    const HealthReport report = cluster.plan.report(cluster.list, results);
    REQUIRE(report.all_gather);
    CHECK(report.all_gather->nodes == 4);
    CHECK(!report.all_gather->ms);
    return report.all_gather->why_not;
  };
  cluster.ring_fails = {{1, true}, {2, true}};
  CHECK(why_not() == "node 1: no answer");
  cluster.ring_fails = {{0, true}, {1, true}, {2, false}, {3, true}};
  CHECK(why_not() == "node 2: no answer");
  cluster.ring_fails = {{0, true}, {3, false}, {2, false}};
  CHECK(why_not() == "node 2: no answer");
  cluster.says[{4, 1}] = "<html>";
  CHECK(why_not() == "node 1: its answer to the check cannot be read: <html>");
  cluster.says[{4, 1}] = text_of(RingResult{});
  CHECK(why_not() == "node 1: it reported no result");
}

TEST_CASE("a ring is made of two nodes at least, and only where it is asked for") {
  Cluster none(3);
  CHECK(!none.plan.report(none.list, none.run()).all_gather);
  Cluster one(3);
  one.rules.measures_all = true;
  for (const int ill : {0, 2}) one.says[{0, ill}] = text_of(SelfResult{.unhealthy = "its product was wrong"});
  const auto results = one.run();
  REQUIRE(one.ordered.size() == 5);
  for (int node = 0; node < 3; ++node) {
    CHECK(one.ordered[4][static_cast<std::size_t>(node)] == text_of(PairOrders{.rank = node}));
  }
  CHECK(!one.plan.report(one.list, results).all_gather);
  Cluster alone(1);
  alone.rules.measures_all = true;
  alone.run();
  CHECK(alone.ordered.size() == 1);
  for (CheckNode& node : none.list) node.passed = true;
  CHECK(none.plan.phases(none.list, {.measures_all = true}) == 0);
}

TEST_CASE("what a node finds in a later phase is in the report, and makes the node unhealthy where it is fatal") {
  const Finding warning{Severity::kWarning, "eth0 counted 3 errors", "eth0", "look at the cable"};
  for (const std::uint32_t phase : {1U, 2U}) {
    CAPTURE(phase);
    for (const bool is_fatal : {false, true}) {
      Cluster cluster(4);
      const auto in_order = cluster.run();
      PairResults says = *read_pair_results(in_order[phase][2]);
      says.findings = {warning};
      if (is_fatal) says.findings.push_back({Severity::kFatal, "eth0 has no link", "eth0", ""});
      cluster.says[{phase, 2}] = text_of(says);
      cluster.ordered.clear();
      const auto results = cluster.run();
      const HealthReport report = cluster.plan.report(cluster.list, results);
      CHECK(report.nodes[2].findings == says.findings);
      CHECK(report.nodes[1].findings.empty());
      const auto unhealthy = cluster.plan.unhealthy(cluster.list, results);
      REQUIRE(unhealthy.size() == (is_fatal ? 1 : 0));
      if (!is_fatal) continue;
      CHECK(unhealthy[0].node_rank == 2);
      CHECK(unhealthy[0].kind == CheckPlan::Unhealthy::Kind::kFaulty);
      CHECK(unhealthy[0].why == "eth0 has no link");
    }
  }
}

TEST_CASE("both ends of a test are told the port and the size of the other where it has an external probe") {
  Cluster cluster(2);
  for (int node = 0; node < 2; ++node) {
    cluster.list[static_cast<std::size_t>(node)].local_world_size = 4 + node;
    cluster.says[{0, node}] = text_of(SelfResult{.port = static_cast<std::uint16_t>(4000 + node),
                                                 .key = format("key{}", node),
                                                 .compute_ms = 3,
                                                 .master_port = static_cast<std::uint16_t>(5000 + node)});
  }
  const auto results = cluster.run();
  for (int node = 0; node < 2; ++node) {
    const PairOrder test = read_pair_orders(cluster.ordered[1][static_cast<std::size_t>(node)])->tests.at(0);
    CHECK(test.master_port == 5000 + (1 - node));
    CHECK(test.local_world_size == 4 + (1 - node));
  }
  // What it exchanges nobody knows.
  const HealthReport report = cluster.plan.report(cluster.list, results);
  REQUIRE(!report.pairs.empty());
  CHECK(report.pairs[0].passed);
  CHECK(!busbw_gbps(report, report.pairs[0], Way::kTcp));
}

namespace {

// A cluster whose nodes have two GPUs each.
struct GpuCluster : Cluster {
  explicit GpuCluster(int nodes) : Cluster(nodes) {
    for (int node = 0; node < nodes; ++node) set(node, {});
  }
  void set(int node, std::optional<GpuFailure> failure, std::string unhealthy = "") {
    says[{0, node}] = text_of(SelfResult{.port = static_cast<std::uint16_t>(4000 + node),
                                         .key = format("key{}", node),
                                         .compute_ms = 3,
                                         .unhealthy = std::move(unhealthy),
                                         .gpu = GpuVersions{.gpus = 2, .nccl = "2.28.9"},
                                         .gpu_figures = GpuFigures{.product_ms = 1, .gathers = 2},
                                         .gpu_failure = std::move(failure)});
  }
  // As Cluster::run(), with what `gather` says of NCCL between two nodes: nothing where they gathered.
  template <class Gather>
  std::vector<CheckResults> run_with(Gather gather) {
    std::vector<CheckResults> results;
    for (std::uint32_t phase = 0; phase < 4; ++phase) {
      const std::vector<std::string> orders = plan.orders(phase, list, results, rules);
      CheckResults answers;
      for (int node = 0; node < static_cast<int>(list.size()); ++node) {
        PairResults said;
        const auto given = read_pair_orders(orders[static_cast<std::size_t>(node)]);
        for (const PairOrder& test : given ? given->tests : std::vector<PairOrder>()) {
          PairResult& result = said.tests.emplace_back(PairResult{.with = test.with, .ms = 5});
          if (test.gpus == 0) continue;
          ++gathers;
          result.gpu_failure = gather(node, test.with);
          if (!result.gpu_failure) result.gpu_ms = 1, result.gpu_ranks = 4, result.gpu_bytes = 1 << 20;
        }
        answers.push_back(phase == 0 ? says.at({0, node}) : text_of(said));
      }
      results.push_back(std::move(answers));
    }
    return results;
  }
  std::vector<std::string> warnings(const std::vector<CheckResults>& results) {
    std::set<std::string> texts;
    for (const NodeHealth& node : plan.report(list, results).nodes) {
      for (const Finding& finding : node.findings) {
        CHECK(finding.severity == Severity::kWarning);
        CHECK(finding.remedy == "if training works, set ELASTIC_RUN_PROBE_GPUS=off");
        texts.insert(finding.what);
      }
    }
    return {texts.begin(), texts.end()};
  }

  int gathers = 0;
};

constexpr auto kGathers = [](int, int) { return std::optional<GatherFailure>(); };
const GpuFailure kNoHandle = {GpuStep::kCompute, "GPU 1: no handle"};

}  // namespace

TEST_CASE("a GPU test that fails in the same step on all nodes leaves nobody out, and is told once") {
  GpuCluster cluster(4);
  for (int node = 0; node < 4; ++node)
    cluster.set(node, GpuFailure{GpuStep::kCompute, format("GPU 1: no handle {}", node)});
  const auto results = cluster.run_with(kGathers);
  CHECK(cluster.plan.unhealthy(cluster.list, results).empty());
  CHECK(cluster.gathers == 0);
  CHECK(cluster.warnings(results) ==
        std::vector<std::string>{
            "the GPU test failed on all 4 nodes (node 0: GPU 1: no handle 0); the tests over TCP decide"});
  const HealthReport report = cluster.plan.report(cluster.list, results);
  CHECK(report.nodes[2].compute_ms == 3);  // the CPU's
  CHECK(!report.by_nccl);
}

TEST_CASE("a GPU test that fails on some nodes alone, or in other steps, leaves out those where it fails") {
  GpuCluster some(4);
  some.set(1, kNoHandle);
  some.set(3, kNoHandle);
  const auto results = some.run_with(kGathers);
  const auto unhealthy = some.plan.unhealthy(some.list, results);
  REQUIRE(unhealthy.size() == 2);
  CHECK(unhealthy[0] == CheckPlan::Unhealthy{1, "GPU 1: no handle"});
  CHECK(unhealthy[1].node_rank == 3);
  GpuCluster steps(2);
  steps.set(0, kNoHandle);
  steps.set(1, GpuFailure{GpuStep::kOpen, "GPU 0: CUDA_ERROR_UNKNOWN"});
  CHECK(steps.plan.unhealthy(steps.list, steps.run_with(kGathers)).size() == 2);
}

TEST_CASE(
    "a node with another fault is left out for it, whatever its GPU test says, and does not speak for the others") {
  GpuCluster cluster(3);
  cluster.set(0, {}, "3 ECC errors");
  cluster.set(1, kNoHandle);
  cluster.set(2, kNoHandle);
  const auto results = cluster.run_with(kGathers);
  const auto unhealthy = cluster.plan.unhealthy(cluster.list, results);
  REQUIRE(unhealthy.size() == 1);
  CHECK(unhealthy[0] == CheckPlan::Unhealthy{0, "3 ECC errors"});
  CHECK(cluster.warnings(results).at(0).starts_with(
      "the GPU test failed on all 2 nodes that have no other fault (node 1: "));
}

TEST_CASE("of one node alone the GPU test's failure stands, with how to do without it") {
  GpuCluster cluster(1);
  cluster.set(0, kNoHandle);
  const std::vector<CheckResults> results = {{cluster.says.at({0, 0})}};
  const auto unhealthy = cluster.plan.unhealthy(cluster.list, results);
  REQUIRE(unhealthy.size() == 1);
  CHECK(unhealthy[0].why == "GPU 1: no handle; if training works, set ELASTIC_RUN_PROBE_GPUS=off");
}

TEST_CASE("NCCL that fails between all nodes leaves nobody out where TCP passed, and is told once") {
  for (const int nodes : {2, 5, 6}) {
    GpuCluster cluster(nodes);
    const auto results = cluster.run_with([](int node, int with) {
      return std::optional(GatherFailure{.why = node < with ? "GPU 0: remote error" : ""});
    });
    CHECK(cluster.plan.unhealthy(cluster.list, results).empty());
    CHECK(cluster.gathers > 0);
    CHECK(cluster.warnings(results) ==
          std::vector<std::string>{format("the all-gather over NCCL failed between all {} nodes that tried it (nodes 0 "
                                          "and 1: GPU 0: remote error); the tests over TCP decide",
                                          nodes)});
    for (const PairHealth& pair : cluster.plan.report(cluster.list, results).pairs) {
      CHECK(pair.passed);
      CHECK(pair.gpu_why_not == "GPU 0: remote error");
    }
  }
}

TEST_CASE("NCCL that works between some nodes names the one that it fails with, and says so") {
  GpuCluster cluster(5);
  const auto results = cluster.run_with([](int node, int with) {
    const bool fails = node == 2 || with == 2;
    return fails ? std::optional(GatherFailure{.why = node == 2 ? "GPU 0: boom" : ""}) : std::nullopt;
  });
  const auto unhealthy = cluster.plan.unhealthy(cluster.list, results);
  REQUIRE(unhealthy.size() == 1);
  CHECK(unhealthy[0].node_rank == 2);
  CHECK(unhealthy[0].kind == CheckPlan::Unhealthy::Kind::kFaulty);
  CHECK(unhealthy[0].why.contains("the all-gather over NCCL failed: GPU 0: boom)"));
  CHECK(cluster.warnings(results).empty());
  CHECK(cluster.plan.report(cluster.list, results).by_nccl);
}

TEST_CASE("wrong bytes over NCCL are nobody's excuse") {
  GpuCluster cluster(2);
  const auto results =
      cluster.run_with([](int, int) { return std::optional(GatherFailure{.why = "it is wrong", .is_defect = true}); });
  CHECK(cluster.plan.unhealthy(cluster.list, results).size() == 2);
}
