#include "health/report/health_report.h"

#include <doctest/doctest.h>

#include "health/report/report_test_support.h"

using namespace elastic::health;

using Ints = std::vector<int>;

TEST_CASE("the outcome of a check is one sentence") {
  HealthReport report = example_report();
  CHECK(sentence(report) ==
        "8 nodes checked in 0.6 s: 6 fit, node 3 (10.0.0.4) is faulty, node 5 (10.0.0.6) is slow in the exchange, the "
        "link between nodes 6 and 7 is bad");
  report.nodes[5].verdict.is_slow_in_compute = true;
  report.nodes[6].verdict.is_slow_in_compute = true;
  report.nodes[0].verdict.fitness = report.nodes[1].verdict.fitness = Fitness::kUndetermined;
  report.bad_links.clear();
  report.slow_links = {{.low = 4, .high = 7}, {.low = 6, .high = 7}};
  report.phase_ms.clear();
  CHECK(sentence(report) ==
        "8 nodes checked: 3 fit, node 3 (10.0.0.4) is faulty, nodes 0-1 are undetermined, node 6 (10.0.0.7) is slow in "
        "compute, node 5 (10.0.0.6) is slow in compute and in the exchange, 2 links are slow");
  CHECK(sentence({.phase_ms = {40}, .nodes = {{}}}) == "1 node checked in 0.0 s: 1 fit");
  CHECK(sentence({.nodes = {{.rank = 0}, {.rank = 1}}}) == "2 nodes checked: all fit");
  CHECK(sentence({.nodes = {{.verdict = {.fitness = Fitness::kFaulty}}}}) == "1 node checked: 0 fit, node 0 is faulty");
}

TEST_CASE("of hundreds of faulty nodes in no row the sentence stays one that can be read") {
  HealthReport report;
  for (int rank = 0; rank < 1000; ++rank) {
    report.nodes.push_back({.rank = rank, .verdict = {.fitness = rank % 2 == 0 ? Fitness::kFaulty : Fitness::kFit}});
  }
  CHECK(sentence(report).starts_with("1000 nodes checked: 500 fit, nodes 0, 2, 4, "));
  CHECK(sentence(report).ends_with(" and so on, 500 in all are faulty"));
  CHECK(sentence(report).size() < 250);
}

TEST_CASE("busbw is bytes over time, as nccl-tests has it for an all-gather of two ranks") {
  const HealthReport report{.exchange_bytes = 4'194'304};
  CHECK(*busbw_gbps(report, {.passed = true, .ms = 0.5}, Way::kTcp) == doctest::Approx(8.388608));
  CHECK(!busbw_gbps(report, {.passed = false, .ms = 0.5}, Way::kTcp));
  CHECK(!busbw_gbps(report, {.passed = true, .ms = 0}, Way::kTcp));
}

TEST_CASE("the all-gather of all nodes is one sentence, with the bandwidths of nccl-tests") {
  HealthReport report{.exchange_bytes = 2 << 20};
  CHECK(!all_gather_rate(report));
  CHECK(all_gather_sentence(report) == "");
  report.all_gather = {.nodes = 8, .ms = 21.5};
  CHECK(all_gather_rate(report)->algobw_gbps == doctest::Approx(8 * 2.097152 / 21.5));
  CHECK(all_gather_rate(report)->busbw_gbps == doctest::Approx(7 * 2.097152 / 21.5));
  CHECK(all_gather_sentence(report) ==
        "all-gather of 8 nodes over TCP, 2 MiB each: 21.5 ms, algobw 0.78 GB/s, busbw 0.68 GB/s");
  report.all_gather = {.nodes = 8, .why_not = "node 3: it refused\x1b[2J\nthe connection"};
  CHECK(!all_gather_rate(report));
  CHECK(all_gather_sentence(report).starts_with("the all-gather of 8 nodes over TCP failed (node 3: it refused"));
  CHECK(all_gather_sentence(report).ends_with("the connection); no node is excluded because of it"));
  CHECK(all_gather_sentence(report).find_first_of("\x1b\n") == std::string::npos);
}

TEST_CASE("a node's best and worst figures are those of its passed tests") {
  const HealthReport report{.exchange_bytes = 1'000'000,
                            .nodes = {{.rank = 0}, {.rank = 1}, {.rank = 2}, {.rank = 3}},
                            .pairs = {{.low = 0, .high = 1, .passed = true, .ms = 1, .latency_us = 40},
                                      {.low = 0, .high = 2, .passed = true, .ms = 4, .latency_us = 30},
                                      {.low = 0, .high = 3, .latency_us = 20, .why_not = "no"},
                                      {.low = 1, .high = 2, .passed = true, .ms = 2}}};
  const std::vector<NodeExchanges> nodes = exchanges_of_nodes(report, Way::kTcp);
  CHECK(nodes[0].best_busbw_gbps == 1.0);
  CHECK(nodes[0].worst_busbw_gbps == 0.25);
  CHECK(nodes[0].latency_us == 30.0);
  CHECK(nodes[1].worst_busbw_gbps == 0.5);
  CHECK(nodes[1].latency_us == 40.0);
  CHECK(!nodes[3].best_busbw_gbps);
  CHECK(median_busbw_gbps(report, Way::kTcp) == 0.5);
  const std::vector<const PairHealth*> pairs = worst_pairs_first(report);
  CHECK(!pairs[0]->passed);
  CHECK(pairs[1]->ms == 4);
  CHECK(pairs[3]->ms == 1);
}

TEST_CASE("nodes are listed worst first: faulty, undetermined, slow, fit, and each of them by rank") {
  HealthReport report;
  for (int rank = 0; rank < 6; ++rank) report.nodes.push_back({.rank = rank});
  report.nodes[1].verdict.is_slow_in_compute = true;
  report.nodes[2].verdict.fitness = Fitness::kUndetermined;
  report.nodes[3].verdict.fitness = report.nodes[5].verdict.fitness = Fitness::kFaulty;
  Ints order;
  for (const NodeHealth* node : worst_first(report)) order.push_back(node->rank);
  CHECK(order == Ints{3, 5, 2, 1, 0, 4});
  CHECK(ranks_of(report, Standing::kFit) == Ints{0, 4});
  CHECK(ranks_of(report, Standing::kSlow) == Ints{1});
}

TEST_CASE("a finding that many nodes have is there once, with all of them; the most severe is first") {
  const std::vector<SharedFinding> all = shared_findings(example_report());
  REQUIRE(all.size() == 2);
  CHECK(all[0].finding.severity == Severity::kFatal);
  CHECK(all[0].nodes == Ints{3});
  CHECK(all[1].finding.what == "/dev/shm is small: 64 MiB");
  CHECK(all[1].nodes == Ints{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(nodes_text(all[1].nodes) == "nodes 0-7");
}

TEST_CASE("a bad link is named with why it failed, a slow one with its time, both with what to do") {
  HealthReport report = example_report();
  report.slow_links = {{.low = 0, .high = 4, .passed = true, .time_ms = 41.2}};
  const std::vector<std::string> links = link_sentences(report);
  REQUIRE(links.size() == 2);
  CHECK(
      links[0].starts_with("the link between node 6 (10.0.0.7) and node 7 (10.0.0.8) is bad: their exchange failed "
                           "(the connection was reset after 1.2 MiB), though both work with other nodes; check"));
  CHECK(links[1].contains("node 4 (10.0.0.5) is slow: their exchange took 41.2 ms, 0.62 ms is usual;"));
}

TEST_CASE("of nodes that are undetermined it is said how to find out") {
  CHECK(undetermined_sentence(example_report()).empty());
  HealthReport report{.nodes = {{.rank = 0}, {.rank = 1}}};
  for (NodeHealth& node : report.nodes) node.verdict.fitness = Fitness::kUndetermined;
  CHECK(undetermined_sentence(report).starts_with("nodes 0-1 are undetermined: all their tests failed"));
  CHECK(undetermined_sentence(report).contains("run --check-only again with such a node, or with more nodes"));
}

TEST_CASE("figures have about three digits, and none that a node claims fills a line") {
  CHECK(figure_text({}) == "-");
  CHECK(figure_text(0) == "0.00");
  CHECK(figure_text(0.0041) == "0.004");
  CHECK(figure_text(0.523) == "0.52");
  CHECK(figure_text(9.996) == "10.0");
  CHECK(figure_text(41.23) == "41.2");
  CHECK(figure_text(99.97) == "100");
  CHECK(figure_text(1280.4) == "1280");
  CHECK(figure_text(-41.23) == "-41.2");
  CHECK(figure_text(1e300) == "1e+300");
}

TEST_CASE("what other machines say comes onto one line of a terminal, whatever bytes it has") {
  HealthReport report = example_report();
  report.nodes[3].name = "\x1b[2Jevil\n\xc2\x9bname\xff";
  CHECK(node_text(report, 3) == "node 3 (evil\\x0a\\xc2\\x9bname\\xff)");
  report.nodes[3].verdict.why = "a\nb" + std::string(1000, 'x');
  CHECK(why_text(report.nodes[3]).starts_with("a\\x0ab"));
  CHECK(why_text(report.nodes[3]).ends_with("...; it is excluded"));
}

TEST_CASE("busbw over NCCL is nccl-tests' for all GPUs of both nodes, and stands apart from that over TCP") {
  const HealthReport report = example_gpu_report();
  const auto passed = std::ranges::find(report.pairs, true, &PairHealth::passed);
  CHECK(*busbw_gbps(report, *passed, Way::kNccl) == doctest::Approx(67108864.0 * 15 / 2.5e6));
  CHECK(*busbw_gbps(report, *passed, Way::kTcp) == doctest::Approx(4194304 / passed->ms / 1e6));
  CHECK(exchanges_of_nodes(report, Way::kNccl)[0].latency_us == 20.5);
  CHECK(exchanges_of_nodes(report, Way::kTcp)[0].latency_us == 39.0);
  PairHealth without = *passed;
  without.gpu_ms.reset();
  CHECK(!busbw_gbps(report, without, Way::kNccl));
  CHECK(gpu_sentences(example_report()).empty());
  CHECK(!has_gpus(example_report()));
}
