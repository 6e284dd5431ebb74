#include "health/report/health_html.h"

#include <doctest/doctest.h>

#include "health/report/report_test_support.h"
#include "src/base/html_test_support.h"
#include "src/base/screen_text.h"

using namespace elastic;
using namespace elastic::health;
using namespace std::string_literals;

TEST_CASE("the page of a check has its outcome, the nodes worst first, a map of all pairs, links and findings") {
  const std::string page = health_page(example_report());
  CHECK(page.starts_with("<!DOCTYPE html>\n"));
  CHECK(page.contains("<p class=\"headline bad\">8 nodes checked in 0.6 s: 6 fit, node 3 (10.0.0.4) is faulty"));
  CHECK(page.find("<td class=\"node\">3 10.0.0.4</td>") < page.find("<td class=\"node\">5 10.0.0.6</td>"));
  CHECK(page.find("<td class=\"node\">5 10.0.0.6</td>") < page.find("<td class=\"node\">0 10.0.0.1</td>"));
  CHECK(page.contains("<span class=\"verdict faulty\">faulty</span>"));
  CHECK(page.contains("<li>the link between node 6 (10.0.0.7) and node 7 (10.0.0.8) is bad"));
  CHECK(page.contains("<td>nodes 0-7</td><td>/dev/shm is small: 64 MiB</td>"));
  CHECK(page.contains("4 MiB each way"));
  CHECK(page.contains("2026-11-21 16:46:43 (UTC)"));
  CHECK(balanced(page));
}

TEST_CASE("in the map a pair that failed has a mark beside its colour, one that was not tested is empty") {
  HealthReport report{.exchange_bytes = 4'194'304};
  for (int rank = 0; rank < 4; ++rank) report.nodes.push_back({.rank = rank});
  report.pairs = {{.low = 0, .high = 1, .why_not = "reset"},
                  {.low = 2, .high = 3, .passed = true, .ms = 1},
                  {.low = 0, .high = 3, .stage = 2, .passed = true, .ms = 1.2},
                  {.low = 1, .high = 2, .stage = 2, .passed = true, .ms = 9}};
  const std::string page = health_page(report);
  CHECK(count(page, "<g class=\"cell failed\">") == 2);  // above and below the diagonal
  CHECK(count(page, "<path class=\"cross\"") == 2);
  CHECK(count(page, "<g class=\"cell q4\">") == 2);
  CHECK(count(page, "<rect class=\"self\"") == 4);
  CHECK(count(page, "<rect class=\"none\"") == 4);
  CHECK(page.contains("<title>node 0 and node 1\nstage 1: failed: reset</title>"));
  CHECK(page.contains("stage 2: 0.47 GB/s (13 % of the median), 9.00 ms</title>"));
}

TEST_CASE("of a pair that was tested twice the map shows the worse, and the title both") {
  HealthReport report{.exchange_bytes = 4'194'304,
                      .nodes = {{.rank = 0}, {.rank = 1}},
                      .pairs = {{.low = 0, .high = 1, .passed = true, .ms = 1},
                                {.low = 0, .high = 1, .stage = 2, .why_not = "no answer"}}};
  std::string page = health_page(report);
  CHECK(count(page, "<g class=\"cell failed\">") == 2);
  CHECK(page.contains("stage 1: 4.19 GB/s (100 % of the median), 1.00 ms\nstage 2: failed: no answer</title>"));
  report.pairs[1] = {.low = 0, .high = 1, .stage = 2, .passed = true, .ms = 4};
  page = health_page(report);
  CHECK(page.contains(">1.05</text>"));
  CHECK(!page.contains(">4.19</text>"));
}

TEST_CASE("the page says how fast the all-gather of all nodes was, or why there is no figure") {
  HealthReport report = example_report();
  CHECK(!health_page(report).contains("over TCP"));
  report.phase_ms.push_back(180);
  report.all_gather = {.nodes = 6, .bytes = 4'194'304, .ms = 21.5};
  CHECK(health_page(report).contains("<p>all-gather of 6 nodes over TCP, 4 MiB each: 21.5 ms, algobw 1.17 GB/s"));
  CHECK(health_page(report).contains("third pairs 55.5 ms, all nodes in a ring 180 ms"));
  report.all_gather = {.nodes = 6, .why_not = "node 1: <b>"};
  CHECK(health_page(report).contains("<p>the all-gather of 6 nodes over TCP failed (node 1: &lt;b&gt;)"));
  CHECK(balanced(health_page(report)));
}

TEST_CASE("in a map whose cells are too small for figures a slow pair has a mark, too") {
  const std::string page = health_page(example_report(64));
  CHECK(count(page, "<path class=\"slash\"") == count(page, "<g class=\"cell q4\">"));
  CHECK(count(page, "<path class=\"slash\"") > 0);
  CHECK(count(page, "<rect class=\"self\"") == 64);
  CHECK(!page.contains("The map shows"));
}

TEST_CASE("the page of a check needs nothing from elsewhere and runs nothing") {
  const std::string page = health_page(example_report());
  CHECK(foreign_part(page).empty());
  CHECK(page.contains("default-src 'none'"));
}

TEST_CASE("no name or reason of another machine can break out of its place on the page") {
  const std::string evil = "</title></script><script>alert('1')</script>\" onload=\"x\" & \x1b[2J\x07\xff\0"s;
  HealthReport report = example_report();
  report.job = evil;
  for (NodeHealth& node : report.nodes) {
    node.name = node.verdict.why = evil;
    node.findings = {{Severity::kFatal, evil, evil, evil}};
  }
  for (PairHealth& pair : report.pairs) pair.why_not = evil;
  const std::string page = health_page(report);
  CHECK(!page.contains("<script"));
  CHECK(!page.contains("onload=\""));
  CHECK(page.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot; onload=&quot;x&quot; &amp; "));
  CHECK(is_utf8(page));
  for (const char c : page) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
  CHECK(balanced(page));
}

TEST_CASE("of a cluster of thousands the map has the bad nodes and those that they met, and the page is bounded") {
  HealthReport report = example_report(2000);
  std::string page = health_page(report);
  CHECK(page.contains("The map shows 10 of 2000 nodes: those that are not fit"));
  CHECK(count(page, "<rect class=\"self\"") == 10);
  CHECK(page.size() < 200'000);
  for (NodeHealth& node : report.nodes) node.verdict.fitness = Fitness::kFaulty;
  for (PairHealth& pair : report.pairs) pair.passed = false;
  page = health_page(report);
  CHECK(count(page, "<rect class=\"self\"") == kMapNodes);
  CHECK(page.contains("And 1744 nodes that are no worse than these."));
  CHECK(page.size() < 1'000'000);
  CHECK(balanced(page));
}

TEST_CASE("a page without pairs, or of a large cluster without a fault, says so in place of a map") {
  CHECK(health_page({.nodes = {{.rank = 0}}}).contains("No two nodes were tested with each other."));
  HealthReport report{.nodes = std::vector<NodeHealth>(100), .pairs = {{.low = 0, .high = 1, .passed = true, .ms = 1}}};
  const std::string page = health_page(report);
  CHECK(page.contains("No pair of nodes failed or has a node that is not fit."));
  CHECK(page.contains("<p class=\"headline\">100 nodes checked: all fit.</p>"));
  CHECK(balanced(page));
  CHECK(balanced(health_page({})));
}

TEST_CASE(
    "where GPUs were tested the page has their figures beside each node's, a map of NCCL, and what they were tested "
    "with") {
  const std::string plain = health_page(example_report());
  for (const char* word : {"GPU", "NCCL"}) CHECK(!plain.contains(word));
  HealthReport report = example_gpu_report();
  std::string page = health_page(report);
  CHECK(page.contains("<th class=\"number\">GPU TFLOP/s</th><th class=\"number\">GPU memory GB/s</th>"));
  CHECK(
      page.contains("<td class=\"number\">716</td><td class=\"number\">2905</td><td class=\"number\">55.1</td>"
                    "<td class=\"number\">54.3</td><td class=\"number\">403</td><td class=\"number\">20.5</td>"));
  CHECK(page.contains("<h2>All-gather over NCCL between nodes</h2>"));
  CHECK(page.contains("403 GB/s (100 % of the median), 2.50 ms, latency 20.5 us; over TCP "));
  CHECK(page.contains("<b>403 GB/s</b>busbw over NCCL, median"));
  CHECK(page.contains(
      "<li>nodes 0-5, 7: 8 x NVIDIA H100, driver 580.65.06, NCCL 2.28.9 (/p/libnccl.so.2), cuBLASLt 13.1.0"));
  CHECK(page.contains("by nccl-tests' formula"));
  CHECK(balanced(page));
  report.by_nccl = false;
  report.pairs[0].gpu_ms.reset();
  report.pairs[0].gpu_why_not = "no <route>";
  page = health_page(report);
  CHECK(page.contains("<h2>Exchange between nodes</h2>"));
  CHECK(page.contains("; over NCCL it failed: no &lt;route&gt;"));
}
