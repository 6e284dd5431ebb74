#include "health/report/health_table.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/screen_text.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

// Widths in columns; those of the figures and the verdict include the blanks before them.
constexpr std::size_t kLeastName = 12;
constexpr std::size_t kMostName = 24;
constexpr std::size_t kFigures = 51;
constexpr std::size_t kVerdict = 14;
constexpr std::size_t kLeastWhy = 30;
constexpr std::size_t kIndent = 4;

constexpr std::size_t kNoLimit = SIZE_MAX;

struct Row {
  const NodeHealth* node;
  NodeExchanges exchanges;  // over TCP
  NodeExchanges gathers;    // over NCCL
};

// The rank and the name of a node, cut to so many columns.
std::string label(const NodeHealth& node, std::size_t columns) {
  const std::string name = node.name.empty() ? format("{}", node.rank) : format("{} {}", node.rank, shown(node.name));
  return character_count(name) <= columns ? name : printable(name, columns - 3);
}

std::string padded(const std::string& text, std::size_t columns) {
  return text + std::string(columns - std::min(columns, character_count(text)), ' ');
}

std::vector<Row> rows_of(const HealthReport& report) {
  const std::vector<NodeExchanges> exchanges = exchanges_of_nodes(report, Way::kTcp);
  const std::vector<NodeExchanges> gathers = exchanges_of_nodes(report, Way::kNccl);
  const bool all = report.nodes.size() <= kTableAllNodes;
  std::vector<Row> rows;
  for (const NodeHealth* node : worst_first(report)) {
    if (!all && (standing_of(*node) == Standing::kFit || rows.size() == kTableRows)) break;
    const auto index = static_cast<std::size_t>(node->rank);
    rows.push_back({node, exchanges[index], gathers[index]});
  }
  return rows;
}

std::string line_of(const std::string& name, std::size_t name_columns, const std::vector<std::string>& figures,
                    std::string_view verdict) {
  return format("{}  {:>7}  {:>6}  {:>10}  {:>11}  {:>7}  {:<12}", padded(name, name_columns), figures[0], figures[1],
                figures[2], figures[3], figures[4], verdict);
}

std::string without_blanks_at_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// The width of the first column: of the longest name, if the other columns leave as much.
std::size_t name_columns_of(const std::vector<Row>& rows, std::size_t width) {
  std::size_t columns = kLeastName;
  for (const Row& row : rows) columns = std::max(columns, character_count(label(*row.node, kMostName)));
  return std::min(columns, width - kFigures - kVerdict);
}

// A second table, for the nodes that have tested GPUs; it is no wider than the first one.
std::string gpu_columns_of(const std::vector<Row>& rows, std::size_t width) {
  const std::size_t name_columns = name_columns_of(rows, width);
  const auto line = [&](const std::string& name, const std::vector<std::string>& figures) {
    return without_blanks_at_end(format("{}  {:>7}  {:>7}  {:>7}  {:>8}  {:>10}  {:>7}", padded(name, name_columns),
                                        figures[0], figures[1], figures[2], figures[3], figures[4], figures[5]));
  };
  std::string out = line("", {"product", "memory", "to GPU", "from GPU", "NCCL busbw", "latency"}) +
                    line("GPUs of node", {"TFLOP/s", "GB/s", "GB/s", "GB/s", "GB/s", "us"});
  for (const Row& row : rows) {
    if (!row.node->gpu_figures) continue;
    const GpuFigures& gpu = *row.node->gpu_figures;
    out += line(label(*row.node, name_columns),
                {figure_text(gpu.tflops), figure_text(gpu.memory_gbps), figure_text(gpu.host_to_device_gbps),
                 figure_text(gpu.device_to_host_gbps), figure_text(row.gathers.best_busbw_gbps),
                 figure_text(row.gathers.latency_us)});
  }
  return out;
}

std::string columns_of(const std::vector<Row>& rows, std::size_t width) {
  const std::size_t name_columns = name_columns_of(rows, width);
  const std::size_t before = name_columns + kFigures + kVerdict + 2;
  const bool why_beside = width >= before + kLeastWhy;
  std::string out = without_blanks_at_end(
      line_of("", name_columns, {"compute", "memory", "best busbw", "worst busbw", "latency"}, ""));
  out += without_blanks_at_end(line_of("node", name_columns, {"ms", "GB/s", "GB/s", "GB/s", "us"}, "verdict") +
                               (why_beside ? "  why" : ""));
  for (const auto& [node, exchanges, gathers] : rows) {
    std::string line =
        line_of(label(*node, name_columns), name_columns,
                {figure_text(node->compute_ms), figure_text(node->memory_gbps), figure_text(exchanges.best_busbw_gbps),
                 figure_text(exchanges.worst_busbw_gbps), figure_text(exchanges.latency_us)},
                standing_name(standing_of(*node)));
    const std::string why = why_text(*node);
    if (why.empty()) {
      out += without_blanks_at_end(line);
    } else if (why_beside) {
      const std::size_t room = width == kNoLimit ? kNoLimit : width - before;
      out += line + "  " + replace_all(wrap(why, room, 0), "\n", "\n" + std::string(before, ' ')) + "\n";
    } else {
      out += without_blanks_at_end(line) + std::string(kIndent, ' ');
      out += replace_all(wrap(why, width - kIndent, 0), "\n", "\n" + std::string(kIndent, ' ')) + "\n";
    }
  }
  return out;
}

std::string sentences_of(const HealthReport& report, const std::vector<Row>& rows, std::size_t width) {
  std::string out;
  const auto add = [](std::string& text, const std::optional<double>& value, const char* what, const char* unit) {
    if (value) text += format("; {} {} {}", what, figure_text(value), unit);
  };
  for (const auto& [node, exchanges, gathers] : rows) {
    std::string text = format("{}: {}", node_text(report, node->rank), standing_name(standing_of(*node)));
    if (const std::string why = why_text(*node); !why.empty()) text += ": " + why;
    add(text, node->compute_ms, "compute", "ms");
    add(text, node->memory_gbps, "memory", "GB/s");
    add(text, exchanges.best_busbw_gbps, "best busbw", "GB/s");
    add(text, exchanges.worst_busbw_gbps, "worst busbw", "GB/s");
    add(text, exchanges.latency_us, "latency", "us");
    const GpuFigures gpu = node->gpu_figures.value_or(GpuFigures{});
    add(text, gpu.tflops, "GPU product", "TFLOP/s");
    add(text, gpu.memory_gbps, "GPU memory", "GB/s");
    add(text, gpu.host_to_device_gbps, "to GPU", "GB/s");
    add(text, gpu.device_to_host_gbps, "from GPU", "GB/s");
    add(text, gathers.best_busbw_gbps, "NCCL busbw", "GB/s");
    add(text, gathers.latency_us, "NCCL latency", "us");
    out += wrap(text, width, kIndent) + "\n";
  }
  return out;
}

// A summary of the nodes that have no row; empty where all have one.
std::string the_others(const HealthReport& report, const std::vector<Row>& rows, std::size_t width) {
  if (rows.size() == report.nodes.size()) return {};
  const std::vector<int> fit = ranks_of(report, Standing::kFit);
  const std::size_t not_fit = report.nodes.size() - fit.size() - rows.size();
  std::string out;
  if (not_fit > 0) out += wrap(format("and {} more nodes that are not fit", not_fit), width, kIndent) + "\n";
  if (fit.empty()) return out;
  std::vector<double> compute_ms;
  std::vector<double> tflops;
  for (const int rank : fit) {
    const NodeHealth& node = report.nodes[static_cast<std::size_t>(rank)];
    if (node.compute_ms) compute_ms.push_back(*node.compute_ms);
    if (node.gpu_figures && node.gpu_figures->tflops) tflops.push_back(*node.gpu_figures->tflops);
  }
  std::string text = fit.size() == report.nodes.size() ? format("all {} nodes are fit", fit.size())
                     : fit.size() == 1                 ? std::string("and 1 node that is fit")
                                                       : format("and {} nodes that are fit", fit.size());
  std::vector<std::string> medians;
  if (const auto ms = median(std::move(compute_ms))) medians.push_back(format("compute {} ms", figure_text(ms)));
  const auto add = [&medians](const char* what, const std::optional<double>& value, const char* unit) {
    if (value) medians.push_back(format("{} {} {}", what, figure_text(value), unit));
  };
  add("busbw", median_busbw_gbps(report, Way::kTcp), "GB/s");
  add("GPU product", median(std::move(tflops)), "TFLOP/s");
  add("NCCL busbw", median_busbw_gbps(report, Way::kNccl), "GB/s");
  if (!medians.empty()) text += "; medians: " + join(medians, ", ");
  return out + wrap(text, width, kIndent) + "\n";
}

std::string findings_of(const HealthReport& report, std::size_t width) {
  const std::vector<SharedFinding> all = shared_findings(report);
  std::string out;
  for (std::size_t i = 0; i < std::min(all.size(), kTableFindings); ++i) {
    const auto& [finding, nodes] = all[i];
    std::string text = format("{}, {}: {}", severity_name(finding.severity), nodes_text(nodes), shown(finding.what));
    if (!finding.where.empty()) text += format(" ({})", shown(finding.where));
    if (!finding.remedy.empty()) text += "; " + shown(finding.remedy);
    out += wrap(text, width, kIndent) + "\n";
  }
  if (all.size() > kTableFindings) out += format("and {} more findings\n", all.size() - kTableFindings);
  return out;
}

}  // namespace

std::string health_table(const HealthReport& report, std::size_t width) {
  if (width == 0) width = kNoLimit;
  const std::vector<Row> rows = rows_of(report);
  std::string out;
  if (width < kLeastName + kFigures + kVerdict) {
    out = sentences_of(report, rows, width);
  } else if (!rows.empty()) {
    out = columns_of(rows, width);
    const auto has_figures = [](const Row& row) { return row.node->gpu_figures.has_value(); };
    if (std::ranges::any_of(rows, has_figures)) out += gpu_columns_of(rows, width);
  }
  out += the_others(report, rows, width);
  const std::vector<std::string> gpus = gpu_sentences(report);
  for (std::size_t i = 0; i < std::min(gpus.size(), kTableLinks); ++i) out += wrap(gpus[i], width, kIndent) + "\n";
  if (gpus.size() > kTableLinks) out += format("and {} more sets of GPUs\n", gpus.size() - kTableLinks);
  const std::vector<std::string> links = link_sentences(report);
  for (std::size_t i = 0; i < std::min(links.size(), kTableLinks); ++i) out += wrap(links[i], width, kIndent) + "\n";
  if (links.size() > kTableLinks) out += format("and {} more links\n", links.size() - kTableLinks);
  if (const std::string text = undetermined_sentence(report); !text.empty()) out += wrap(text, width, kIndent) + "\n";
  return out + findings_of(report, width);
}

}  // namespace elastic::health
