#include "health/report/health_report.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "src/base/check.h"
#include "src/base/screen_text.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

constexpr std::size_t kNameBytes = 64;
constexpr std::size_t kRangesBytes = 120;

const NodeHealth& node_of(const HealthReport& report, int rank) {
  ELASTIC_CHECK(rank >= 0 && static_cast<std::size_t>(rank) < report.nodes.size());
  return report.nodes[static_cast<std::size_t>(rank)];
}

std::optional<double> smaller(const std::optional<double>& one, const std::optional<double>& other) {
  return one && other ? std::min(*one, *other) : one ? one : other;
}

std::optional<double> larger(const std::optional<double>& one, const std::optional<double>& other) {
  return one && other ? std::max(*one, *other) : one ? one : other;
}

// ", node 3 (10.0.0.4) is slow", ", nodes 3, 5-7 are slow"; empty if there are no such nodes.
std::string clause(const HealthReport& report, const std::vector<int>& ranks, std::string_view what) {
  if (ranks.empty()) return {};
  if (ranks.size() == 1) return format(", {} is {}", node_text(report, ranks.front()), what);
  return format(", {} are {}", nodes_text(ranks), what);
}

std::string slow_clauses(const HealthReport& report) {
  std::vector<int> compute;
  std::vector<int> exchange;
  std::vector<int> both;
  for (const int rank : ranks_of(report, Standing::kSlow)) {
    const NodeVerdict& verdict = node_of(report, rank).verdict;
    std::vector<int>& kind = !verdict.is_slow_in_exchange ? compute : !verdict.is_slow_in_compute ? exchange : both;
    kind.push_back(rank);
  }
  return clause(report, compute, "slow in compute") + clause(report, exchange, "slow in the exchange") +
         clause(report, both, "slow in compute and in the exchange");
}

std::string links_clause(const std::vector<PairTest>& links, std::string_view what) {
  if (links.empty()) return {};
  if (links.size() > 1) return format(", {} links are {}", links.size(), what);
  return format(", the link between nodes {} and {} is {}", links.front().low, links.front().high, what);
}

// " (why)": the reason for which the test between two nodes failed; empty if the report has none.
std::string why_failed(const HealthReport& report, const PairTest& link) {
  const auto test = std::ranges::find_if(report.pairs, [&](const PairHealth& pair) {
    return pair.low == link.low && pair.high == link.high && !pair.passed && !pair.why_not.empty();
  });
  return test == report.pairs.end() ? "" : format(" ({})", shown(test->why_not));
}

std::optional<double> median_exchange_ms(const HealthReport& report) {
  std::vector<double> passed;
  for (const PairHealth& pair : report.pairs) {
    if (const auto ms = test_ms(pair, judged_way(report))) passed.push_back(*ms);
  }
  return median(std::move(passed));
}

}  // namespace

Standing standing_of(const NodeHealth& node) {
  switch (node.verdict.fitness) {
    case Fitness::kFaulty: return Standing::kFaulty;
    case Fitness::kUndetermined: return Standing::kUndetermined;
    case Fitness::kFit: break;
  }
  return node.verdict.is_straggler() ? Standing::kSlow : Standing::kFit;
}

const char* standing_name(Standing standing) {
  constexpr std::array kNames{"faulty", "undetermined", "slow", "fit"};
  static_assert(kNames.size() == static_cast<std::size_t>(Standing::kFit) + 1);
  return kNames[static_cast<std::size_t>(standing)];
}

std::vector<int> ranks_of(const HealthReport& report, Standing standing) {
  std::vector<int> ranks;
  for (const NodeHealth& node : report.nodes) {
    if (standing_of(node) == standing) ranks.push_back(node.rank);
  }
  return ranks;
}

std::vector<const NodeHealth*> worst_first(const HealthReport& report) {
  std::vector<const NodeHealth*> nodes;
  for (const NodeHealth& node : report.nodes) nodes.push_back(&node);
  std::ranges::stable_sort(nodes, {}, [](const NodeHealth* node) { return standing_of(*node); });
  return nodes;
}

Way judged_way(const HealthReport& report) { return report.by_nccl ? Way::kNccl : Way::kTcp; }

std::optional<double> test_ms(const PairHealth& pair, Way way) {
  if (!pair.passed) return {};
  return way == Way::kNccl ? pair.gpu_ms : pair.ms;
}

std::optional<double> busbw_gbps(const HealthReport& report, const PairHealth& pair, Way way) {
  const auto ms = test_ms(pair, way);
  const double bytes = way == Way::kNccl ? static_cast<double>(pair.gpu_bytes) * (pair.gpu_ranks - 1)
                                         : static_cast<double>(report.exchange_bytes);
  if (!ms || *ms <= 0 || bytes <= 0) return {};
  return bytes / *ms / 1e6;
}

std::optional<double> median_busbw_gbps(const HealthReport& report, Way way) {
  std::vector<double> all;
  for (const PairHealth& pair : report.pairs) {
    if (const auto busbw = busbw_gbps(report, pair, way)) all.push_back(*busbw);
  }
  return median(std::move(all));
}

std::optional<AllGatherRate> all_gather_rate(const HealthReport& report) {
  const auto& gather = report.all_gather;
  if (!gather || !gather->ms) return {};
  const double sent_gbps = static_cast<double>(gather->bytes) / *gather->ms / 1e6;
  return AllGatherRate{.algobw_gbps = sent_gbps * gather->nodes, .busbw_gbps = sent_gbps * (gather->nodes - 1)};
}

std::vector<NodeExchanges> exchanges_of_nodes(const HealthReport& report, Way way) {
  std::vector<NodeExchanges> out(report.nodes.size());
  for (const PairHealth& pair : report.pairs) {
    if (!pair.passed) continue;
    const std::optional<double> busbw = busbw_gbps(report, pair, way);
    for (const int rank : {pair.low, pair.high}) {
      NodeExchanges& node = out.at(static_cast<std::size_t>(node_of(report, rank).rank));
      node.best_busbw_gbps = larger(node.best_busbw_gbps, busbw);
      node.worst_busbw_gbps = smaller(node.worst_busbw_gbps, busbw);
      node.latency_us = smaller(node.latency_us, way == Way::kNccl ? pair.gpu_latency_us : pair.latency_us);
    }
  }
  return out;
}

std::vector<const PairHealth*> worst_pairs_first(const HealthReport& report) {
  std::vector<const PairHealth*> pairs;
  for (const PairHealth& pair : report.pairs) pairs.push_back(&pair);
  const Way way = judged_way(report);
  std::ranges::stable_sort(
      pairs, {}, [way](const PairHealth* pair) { return std::pair(pair->passed, -test_ms(*pair, way).value_or(0)); });
  return pairs;
}

std::vector<SharedFinding> shared_findings(const HealthReport& report) {
  std::vector<SharedFinding> out;
  std::map<std::tuple<Severity, std::string, std::string, std::string>, std::size_t> places;
  for (const NodeHealth& node : report.nodes) {
    for (const Finding& finding : node.findings) {
      const auto [place, is_new] =
          places.try_emplace({finding.severity, finding.what, finding.where, finding.remedy}, out.size());
      if (is_new) out.push_back({.finding = finding, .nodes = {}});
      std::vector<int>& nodes = out[place->second].nodes;
      if (nodes.empty() || nodes.back() != node.rank) nodes.push_back(node.rank);
    }
  }
  std::ranges::stable_sort(out, std::greater<>(), [](const SharedFinding& shared) { return shared.finding.severity; });
  return out;
}

std::string shown(std::string_view text, std::size_t max_bytes) { return printable(screen_text(text), max_bytes); }

std::string node_text(const HealthReport& report, int rank) {
  const std::string& name = node_of(report, rank).name;
  return name.empty() ? format("node {}", rank) : format("node {} ({})", rank, shown(name, kNameBytes));
}

std::string nodes_text(const std::vector<int>& ranks) {
  std::string ranges = rank_ranges(ranks);
  if (ranges.size() > kRangesBytes) {
    ranges = format("{} and so on, {} in all", ranges.substr(0, ranges.rfind(',', kRangesBytes)), ranks.size());
  }
  return format("{} {}", plural("node", ranks.size()), ranges);
}

std::string figure_text(const std::optional<double>& value) {
  if (!value) return "-";
  const double size = *value < 0 ? -*value : *value;
  // A node may send any number; one that is far out of range must not fill a line.
  if (size >= 1e6) return format("{:.0e}", *value);
  if (size >= 99.95) return format("{:.0f}", *value);
  if (size >= 9.995) return format("{:.1f}", *value);
  return size == 0 || size >= 0.1 ? format("{:.2f}", *value) : format("{:.1g}", *value);
}

std::string why_text(const NodeHealth& node) {
  const std::string why = shown(node.verdict.why);
  if (!node.left_out) return why;
  return why.empty() ? "it is excluded" : why + "; it is excluded";
}

std::optional<double> took_ms(const HealthReport& report) {
  if (report.phase_ms.empty()) return {};
  return std::accumulate(report.phase_ms.begin(), report.phase_ms.end(), 0.0);
}

bool has_gpus(const HealthReport& report) {
  return std::ranges::any_of(report.nodes, [](const NodeHealth& node) { return node.gpu || node.gpu_figures; });
}

std::vector<std::string> gpu_sentences(const HealthReport& report) {
  std::vector<std::pair<std::string, std::vector<int>>> all;  // in the order of the first node of each
  std::map<std::string, std::size_t> places;
  for (const NodeHealth& node : report.nodes) {
    if (!node.gpu) continue;
    const GpuVersions& gpu = *node.gpu;
    std::string text = format("{} x {}", gpu.gpus, gpu.model.empty() ? "GPU" : shown(gpu.model, kNameBytes));
    if (!gpu.driver.empty()) text += format(", driver {}", shown(gpu.driver, kNameBytes));
    for (const auto& [name, version, path] :
         {std::tuple("NCCL", &gpu.nccl, &gpu.nccl_path), std::tuple("cuBLASLt", &gpu.cublaslt, &gpu.cublaslt_path)}) {
      text += version->empty() && path->empty()
                  ? format(", no {}", name)
                  : format(", {} {} ({})", name, shown(*version, kNameBytes), shown(*path));
    }
    const auto [place, is_new] = places.try_emplace(text, all.size());
    if (is_new) all.emplace_back(text, std::vector<int>());
    all[place->second].second.push_back(node.rank);
  }
  std::vector<std::string> out;
  for (const auto& [text, nodes] : all) out.push_back(format("{}: {}", nodes_text(nodes), text));
  return out;
}

std::string sentence(const HealthReport& report) {
  const std::size_t nodes = report.nodes.size();
  const std::optional<double> took = took_ms(report);
  const std::string in = took ? format(" in {:.1f} s", *took / 1000) : "";
  std::string out = format("{} checked{}: ", counted(nodes, "node"), in);
  const std::size_t fit = ranks_of(report, Standing::kFit).size();
  out += fit == nodes && nodes > 1 ? "all fit" : format("{} fit", fit);
  out += clause(report, ranks_of(report, Standing::kFaulty), "faulty");
  out += clause(report, ranks_of(report, Standing::kUndetermined), "undetermined");
  return out + slow_clauses(report) + links_clause(report.bad_links, "bad") + links_clause(report.slow_links, "slow");
}

std::string block_text(std::int64_t bytes) {
  constexpr std::int64_t kMib = 1024 * 1024;
  if (bytes == 0) return "an unknown number of bytes, by an external probe,";
  return bytes % kMib == 0 ? format("{} MiB", bytes / kMib) : format("{} bytes", bytes);
}

std::string all_gather_sentence(const HealthReport& report) {
  if (!report.all_gather) return {};
  const AllGather& gather = *report.all_gather;
  const std::optional<AllGatherRate> rate = all_gather_rate(report);
  if (!rate) {
    return format("the all-gather of {} nodes over TCP failed ({}); no node is excluded because of it", gather.nodes,
                  shown(gather.why_not));
  }
  return format("all-gather of {} nodes over TCP, {} each: {} ms, algobw {} GB/s, busbw {} GB/s", gather.nodes,
                block_text(gather.bytes), figure_text(gather.ms), figure_text(rate->algobw_gbps),
                figure_text(rate->busbw_gbps));
}

std::vector<std::string> link_sentences(const HealthReport& report) {
  std::vector<std::string> out;
  for (const PairTest& link : report.bad_links) {
    out.push_back(
        format("the link between {} and {} is bad: their exchange failed{}, though both work with other nodes; "
               "check the cables, switches and firewalls between them",
               node_text(report, link.low), node_text(report, link.high), why_failed(report, link)));
  }
  const std::optional<double> usual = median_exchange_ms(report);
  for (const PairTest& link : report.slow_links) {
    out.push_back(
        format("the link between {} and {} is slow: their {} took {} ms, {} ms is usual; check the "
               "cables and switches between them, and other traffic on them",
               node_text(report, link.low), node_text(report, link.high), report.settings.exchange,
               figure_text(link.time_ms), figure_text(usual)));
  }
  return out;
}

std::string undetermined_sentence(const HealthReport& report) {
  const std::vector<int> ranks = ranks_of(report, Standing::kUndetermined);
  if (ranks.empty()) return {};
  const bool one = ranks.size() == 1;
  return format(
      "{} {} undetermined: all {} tests failed, and none was with a node that is known to be good; run "
      "--check-only again with such a node, or with more nodes",
      nodes_text(ranks), one ? "is" : "are", one ? "its" : "their");
}

}  // namespace elastic::health
