#include "health/report/dlrover_lines.h"

#include <algorithm>
#include <cmath>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

// The text of a float that Python's round() has rounded to so many digits.
std::string python_float(double value, int digits) {
  const double scale = std::pow(10, digits);
  std::string text = format("{}", std::round(value * scale) / scale);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string python_list(const std::vector<int>& ranks) {
  std::vector<std::string> texts;
  for (const int rank : ranks) texts.push_back(format("{}", rank));
  return "[" + join(texts, ", ") + "]";
}

// What DLRover knows about a node after a round.
struct Known {
  bool has_tested = false;
  std::optional<double> best_ms = {};
  bool passed(const NodeHealth& node) const {
    return has_tested ? best_ms.has_value() : node.verdict.fitness != Fitness::kFaulty;
  }
};

std::vector<Known> known_after(const HealthReport& report, int round) {
  std::vector<Known> out(report.nodes.size());
  for (const PairHealth& pair : report.pairs) {
    if (pair.stage > round) continue;
    for (const int rank : {pair.low, pair.high}) {
      Known& known = out.at(static_cast<std::size_t>(rank));
      known.has_tested = true;
      if (pair.passed) known.best_ms = std::min(known.best_ms.value_or(pair.ms), pair.ms);
    }
  }
  return out;
}

}  // namespace

std::string status_line(const HealthReport& report, int round) {
  const std::vector<Known> known = known_after(report, round);
  std::vector<std::string> items;
  for (const NodeHealth& node : report.nodes) {
    items.push_back(format("{}: {}", node.rank, known[items.size()].passed(node) ? "True" : "False"));
  }
  return format("Round {}: The node status are {{{}}}.", round, join(items, ", "));
}

std::string elapsed_line(const HealthReport& report, int round) {
  const std::vector<Known> known = known_after(report, round);
  std::vector<std::string> items;
  for (const NodeHealth& node : report.nodes) {
    const Known& of_node = known[items.size()];
    const double ms = node.compute_ms.value_or(0) + of_node.best_ms.value_or(0);
    items.push_back(format("{}: {}", node.rank, of_node.passed(node) ? python_float(ms, 3) : "3600"));
  }
  return format("Round {}: The node elapsed time are {{{}}}", round, join(items, ", "));
}

std::string verdict_line(const HealthReport& report) {
  return format("Fault nodes are: {}  and stragglers are: {}.", python_list(ranks_of(report, Standing::kFaulty)),
                python_list(ranks_of(report, Standing::kSlow)));
}

std::vector<std::string> dlrover_lines(const HealthReport& report) {
  int rounds = 1;
  for (const PairHealth& pair : report.pairs) rounds = std::max(rounds, pair.stage);
  std::vector<std::string> lines;
  for (const NodeHealth& node : report.nodes) {
    if (std::ranges::find(node.findings, "gpu-memory", &Finding::name) != node.findings.end())
      lines.push_back(kGpuCheckFailedLine);
  }
  for (int round = 1; round <= rounds; ++round) {
    lines.push_back(status_line(report, round));
    lines.push_back(elapsed_line(report, round));
  }
  lines.push_back(verdict_line(report));
  return lines;
}

std::string allgather_line(int world_size, std::int64_t bytes_per_rank, double ms) {
  ELASTIC_CHECK(world_size > 0 && ms > 0);
  constexpr double kGib = 1024.0 * 1024 * 1024;
  const double algobw = static_cast<double>(bytes_per_rank) / kGib / (ms / 1000);
  const double busbw = algobw * (world_size - 1) / world_size;
  return format("AllGather Perf: world size = {}, algobw={} GB/s, busbw={} GB/s.", world_size, python_float(algobw, 2),
                python_float(busbw, 2));
}

}  // namespace elastic::health
