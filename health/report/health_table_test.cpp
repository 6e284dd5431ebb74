#include "health/report/health_table.h"

#include <doctest/doctest.h>

#include "health/report/report_test_support.h"
#include "src/base/html_test_support.h"
#include "src/base/screen_text.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::health;

namespace {

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  for (const std::string& line : split(text, '\n')) longest = std::max(longest, character_count(line));
  return longest;
}

}  // namespace

TEST_CASE("a table has a row for each node, worst first, then bad links and findings with what to do") {
  const std::string table = health_table(example_report(), 0);
  CHECK(table ==
        "              compute  memory  best busbw  worst busbw  latency\n"
        "node               ms    GB/s        GB/s         GB/s       us  verdict       why\n"
        "3 10.0.0.4       3.03    11.2           -            -        -  faulty        its exchange failed with nodes "
        "2, 1 and 4; it is excluded\n"
        "5 10.0.0.6       3.05    11.5        1.02         1.02      210  slow          its best exchange took 4.1 ms, "
        "0.56 ms is usual\n"
        "0 10.0.0.1       3.00    11.5        7.49         6.77     39.0  fit\n"
        "1 10.0.0.2       3.01    11.4        7.49         7.49     39.0  fit\n"
        "2 10.0.0.3       3.02    11.3        6.77         6.77     40.0  fit\n"
        "4 10.0.0.5       3.04    11.1        8.07         1.02     42.0  fit\n"
        "6 10.0.0.7       3.06    11.4        8.07         1.02     42.0  fit\n"
        "7 10.0.0.8       3.00    11.3        7.49         1.02     39.0  fit\n"
        "the link between node 6 (10.0.0.7) and node 7 (10.0.0.8) is bad: their exchange failed (the connection was "
        "reset after 1.2 MiB), though both work with other nodes; check the cables, switches and firewalls between "
        "them\n"
        "fatal, node 3: the link of eth1 is down (eth1); look at its cable and at the switch\n"
        "warning, nodes 0-7: /dev/shm is small: 64 MiB (/dev/shm); start the container with --shm-size=16g\n");
}

TEST_CASE("a table is as wide as the terminal at most, with names and reasons cut and wrapped") {
  HealthReport report = example_report();
  report.nodes[0].name = "gpu-node-with-a-very-long-name-0.cluster.example.com";
  report.nodes[1].name = "\xc3\xa4\xc3\xb6\xc3\xbc";
  report.nodes[4].verdict.fitness = Fitness::kUndetermined;
  for (std::size_t width = 60; width <= 200; ++width) {
    CAPTURE(width);
    const std::string table = health_table(report, width);
    CHECK(longest_line(table) <= width);
    CHECK(table.contains("faulty"));
    CHECK(table.contains("10.0.0.4"));
    CHECK(table.contains("excluded"));
  }
  CHECK(health_table(report, 80).contains("0 gpu-node-w...     3.00"));
  CHECK(health_table(report, 80).contains("1 \xc3\xa4\xc3\xb6\xc3\xbc               3.01"));
}

TEST_CASE("on a terminal too narrow for columns each node is a sentence") {
  const std::string table = health_table(example_report(), 40);
  CHECK(longest_line(table) <= 40);
  CHECK(table.starts_with("node 3 (10.0.0.4): faulty: its exchange\n    failed with nodes 2, 1 and 4; it is\n"));
  CHECK(count(table, "\nnode ") == 7);
}

TEST_CASE("of many nodes those that are fit have no row and are counted") {
  const std::string table = health_table(example_report(64), 100);
  CHECK(count(table, "  fit") == 0);
  CHECK(table.contains("\n3 10.0.0.4 "));
  CHECK(table.contains("\n5 10.0.0.6 "));
  CHECK(table.contains("\nand 62 nodes that are fit; medians: compute 3.03 ms, busbw "));
  CHECK(table.contains("nodes 0-63: /dev/shm is small"));
  CHECK(health_table({.nodes = std::vector<NodeHealth>(17)}, 80) == "all 17 nodes are fit\n");
}

TEST_CASE("of thousands of bad nodes, links and findings the table shows the first and counts the others") {
  HealthReport report;
  for (int rank = 0; rank < 2000; ++rank) {
    report.nodes.push_back({.rank = rank,
                            .findings = {{Severity::kNote, format("finding {}", rank)}},
                            .verdict = {.fitness = rank == 0 ? Fitness::kFit : Fitness::kFaulty}});
    if (rank > 0) report.bad_links.push_back({.low = 0, .high = rank});
  }
  const std::string table = health_table(report, 100);
  CHECK(count(table, "\n") < 250);
  CHECK(table.contains("\nand 1935 more nodes that are not fit\nand 1 node that is fit\n"));
  CHECK(table.contains("\nand 1983 more links\n"));
  CHECK(table.ends_with("\nand 1968 more findings\n"));
}

TEST_CASE("nothing that other machines say changes the terminal") {
  HealthReport report = example_report();
  const std::string evil =
      "\x1b[2J\r\n\x07\xc2\x9b"
      "2J\xff";
  for (NodeHealth& node : report.nodes) {
    node.name = node.verdict.why = evil;
    node.findings = {{Severity::kNote, evil, evil, evil}};
  }
  for (PairHealth& pair : report.pairs) pair.why_not = evil;
  for (const std::size_t width : {std::size_t{0}, std::size_t{40}, std::size_t{100}}) {
    const std::string table = health_table(report, width);
    CHECK(is_utf8(table));
    CHECK(!table.contains("\xc2\x9b"));
    for (const char c : table) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
  }
}

TEST_CASE("where GPUs were tested a second table has their figures, and a line what they were tested with") {
  const std::string plain = health_table(example_report(), 0);
  HealthReport report = example_gpu_report();
  const std::string table = health_table(report, 0);
  const std::string gpus =
      "              product   memory   to GPU  from GPU  NCCL busbw  latency\n"
      "GPUs of node  TFLOP/s     GB/s     GB/s      GB/s        GB/s       us\n"
      "3 10.0.0.4        718     2905     55.1      54.3           -        -\n"
      "5 10.0.0.6        716     2905     55.1      54.3         403     20.5\n"
      "0 10.0.0.1        720     2905     55.1      54.3         403     20.5\n";
  CHECK(table.contains(gpus));
  CHECK(table.starts_with(plain.substr(0, plain.find("the link between"))));
  CHECK(table.contains(
      "\nnodes 0-5, 7: 8 x NVIDIA H100, driver 580.65.06, NCCL 2.28.9 (/p/libnccl.so.2), cuBLASLt 13.1.0 "
      "(/p/libcublasLt.so.13)\nnode 6: 8 x NVIDIA H100, driver 580.65.06, NCCL 2.27.3"));
  for (std::size_t width = 60; width <= 200; ++width) {
    CAPTURE(width);
    CHECK(longest_line(health_table(report, width)) <= width);
  }
  CHECK(health_table(report, 40).contains("NCCL busbw 403"));
  report.nodes[5].gpu_figures.reset();
  CHECK(count(health_table(report, 0), "5 10.0.0.6") == 1);
}
