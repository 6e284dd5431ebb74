#include "health/report/health_html.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "src/base/html.h"
#include "src/base/text.h"
#include "src/base/wall_time.h"

namespace elastic::health {
namespace {

// The colours go from blue to orange, which people who are red-green colour-blind can tell apart; failed tests have a
// mark as well.
constexpr std::string_view kStyle =
    R"(table { width: 100%; } th.number { text-align: right; } .why { width: 35%; min-width: 12em; }
.node { white-space: nowrap; } ul { padding-left: 1.2em; } summary { cursor: pointer; padding: .4em 0; }
.headline { font-size: 1.15em; border-left: .3em solid #2e7d4f; padding: .3em .8em; background: #f4f4f2; }
.headline.slow { border-color: #d9822b; } .headline.bad { border-color: #b3202a; }
.tiles { display: flex; flex-wrap: wrap; gap: .6em; }
.tile { background: #f4f4f2; padding: .5em .9em; min-width: 5.5em; } .tile b { display: block; font-size: 1.3em; }
.verdict { display: inline-block; padding: 0 .5em; border-radius: .6em; background: #d5eadd; color: #14462a; }
.verdict.slow { background: #f6c58b; color: #4a2800; } .verdict.undetermined { background: #d9d4ea; color: #2e2260; }
.verdict.faulty { background: #b3202a; color: #fff; }
.map { overflow-x: auto; } svg text.faulty { fill: #b3202a; font-weight: bold; }
svg text.slow { fill: #a85a00; font-weight: bold; } svg text.undetermined { fill: #5b4bb0; font-weight: bold; }
.cell rect { stroke: #fff; } .self { fill: #e7e7e4; } .none { fill: none; stroke: #e4e4e0; }
.cell text, svg .cell text { fill: #16202a; text-anchor: middle; }
.q0 rect, .swatch.q0 { fill: #8fc1e3; background: #8fc1e3; }
.q1 rect, .swatch.q1 { fill: #c5dfef; background: #c5dfef; }
.q2 rect, .swatch.q2 { fill: #f4e6b0; background: #f4e6b0; }
.q3 rect, .swatch.q3 { fill: #f5bf6b; background: #f5bf6b; }
.q4 rect, .swatch.q4 { fill: #dd7f23; background: #dd7f23; }
.failed rect, .swatch.failed { fill: #8f1620; background: #8f1620; }
.cross { stroke: #fff; stroke-width: 2; fill: none; } .slash { stroke: #16202a; fill: none; }
.legend { display: flex; flex-wrap: wrap; gap: .3em 1.1em; font-size: .9em; }
.swatch { display: inline-block; width: 1.1em; height: 1.1em; margin-right: .35em; vertical-align: middle; color: #fff;
          text-align: center; line-height: 1.1em; }
.swatch.q4 { color: #16202a; } .swatch.none { background: none; border: 1px solid #bbb; box-sizing: border-box; }
@media (prefers-color-scheme: dark) {
  .headline, .tile { background: #24272a; } .cell rect { stroke: #17191b; } .self { fill: #33373b; }
  .none { stroke: #2c3034; } svg text.faulty { fill: #ff7b82; } svg text.slow { fill: #f2b25e; }
  svg text.undetermined { fill: #b3a7f0; } .swatch.none { border-color: #555; }
}
)";

// Shares of the median busbw: below each of them a cell has the next colour.
constexpr double kLimits[] = {0.9, 0.75, 0.6, 0.5};

constexpr std::size_t kOpenRows = 16;
constexpr std::size_t kLabelCharacters = 24;

std::string rank_name(const HealthReport& report, int rank) {
  const std::string& name = report.nodes[static_cast<std::size_t>(rank)].name;
  return html_text(name.empty() ? format("{}", rank) : format("{} {}", rank, shown(name, 64)));
}

std::string cell(std::string_view kind, const std::string& escaped) {
  return format("<td{}>{}</td>", kind.empty() ? "" : format(" class=\"{}\"", kind), escaped);
}

std::string figure_cell(const std::optional<double>& value) { return cell("number", figure_text(value)); }

std::string more(std::size_t all, std::size_t shown_of_them, std::string_view what) {
  if (all <= shown_of_them) return {};
  return format("<p class=\"quiet\">And {} {}.</p>\n", all - shown_of_them, what);
}

// --- The outcome -----------------------------------------------------------------------------

std::string headline(const HealthReport& report) {
  const bool bad = !ranks_of(report, Standing::kFaulty).empty() || !ranks_of(report, Standing::kUndetermined).empty() ||
                   !report.bad_links.empty();
  const bool slow = !ranks_of(report, Standing::kSlow).empty() || !report.slow_links.empty();
  std::string out = format("<p class=\"headline{}\">{}.</p>\n",
                           bad    ? " bad"
                           : slow ? " slow"
                                  : "",
                           html_text(sentence(report)));
  std::vector<std::string> facts = {format("job {}", html_text(shown(report.job))), format("round {}", report.round)};
  if (report.wall_ms > 0) facts.push_back(format("finished at {} (UTC)", wall_time(report.wall_ms, 0)));
  const char* phases[] = {"each node by itself", "first pairs", "second pairs", "third pairs", "all nodes in a ring"};
  std::vector<std::string> spans;
  for (std::size_t i = 0; i < std::min(report.phase_ms.size(), std::size(phases)); ++i) {
    spans.push_back(format("{} {} ms", phases[i], figure_text(report.phase_ms[i])));
  }
  if (!spans.empty()) facts.push_back(join(spans, ", "));
  if (report.all_gather) out += format("<p>{}.</p>\n", html_text(all_gather_sentence(report)));
  return out + format("<p class=\"quiet\">{}</p>\n", join(facts, "; "));
}

std::string tiles(const HealthReport& report) {
  std::string out = "<div class=\"tiles\">\n";
  const auto tile = [&](const std::string& figure, std::string_view what) {
    out += format("<div class=\"tile\"><b>{}</b>{}</div>\n", figure, what);
  };
  tile(format("{}", report.nodes.size()), "nodes");
  for (const Standing standing : {Standing::kFit, Standing::kSlow, Standing::kFaulty, Standing::kUndetermined}) {
    const std::size_t count = ranks_of(report, standing).size();
    if (count > 0 || standing != Standing::kUndetermined) tile(format("{}", count), standing_name(standing));
  }
  tile(format("{}", report.bad_links.size() + report.slow_links.size()), "bad or slow links");
  const auto busbw_tile = [&](Way way, std::string_view what) {
    if (const auto busbw = median_busbw_gbps(report, way)) tile(figure_text(busbw) + " GB/s", what);
  };
  busbw_tile(Way::kTcp, has_gpus(report) ? "busbw over TCP, median" : "busbw, median");
  busbw_tile(Way::kNccl, "busbw over NCCL, median");
  return out + "</div>\n";
}

// The figures of each node, by rank, over both ways.
struct Exchanges {
  std::vector<NodeExchanges> tcp;
  std::vector<NodeExchanges> nccl;
};

std::string number_header(std::string_view name) { return format("<th class=\"number\">{}</th>", name); }

std::string gpu_headers() {
  std::string out;
  for (const char* name :
       {"GPU TFLOP/s", "GPU memory GB/s", "to GPU GB/s", "from GPU GB/s", "NCCL busbw GB/s", "NCCL latency us"}) {
    out += number_header(name);
  }
  return out;
}

std::string gpu_cells(const NodeHealth& node, const NodeExchanges& gathers) {
  const GpuFigures gpu = node.gpu_figures.value_or(GpuFigures{});
  return figure_cell(gpu.tflops) + figure_cell(gpu.memory_gbps) + figure_cell(gpu.host_to_device_gbps) +
         figure_cell(gpu.device_to_host_gbps) + figure_cell(gathers.best_busbw_gbps) + figure_cell(gathers.latency_us);
}

std::string nodes_rows(const HealthReport& report, std::span<const NodeHealth* const> nodes,
                       const Exchanges& exchanges) {
  const bool with_gpus = has_gpus(report);
  std::string out =
      "<table>\n<tr><th>node</th><th class=\"number\">workers</th><th class=\"number\">compute ms</th>"
      "<th class=\"number\">memory GB/s</th><th class=\"number\">best busbw GB/s</th>"
      "<th class=\"number\">worst busbw GB/s</th><th class=\"number\">latency us</th>";
  if (with_gpus) out += gpu_headers();
  out += "<th>verdict</th><th class=\"why\">why</th></tr>\n";
  for (const NodeHealth* node : nodes) {
    const NodeExchanges& figures = exchanges.tcp[static_cast<std::size_t>(node->rank)];
    const char* standing = standing_name(standing_of(*node));
    out += "<tr>" + cell("node", rank_name(report, node->rank)) + cell("number", format("{}", node->local_world_size));
    out += figure_cell(node->compute_ms) + figure_cell(node->memory_gbps) + figure_cell(figures.best_busbw_gbps);
    out += figure_cell(figures.worst_busbw_gbps) + figure_cell(figures.latency_us);
    if (with_gpus) out += gpu_cells(*node, exchanges.nccl[static_cast<std::size_t>(node->rank)]);
    out += cell("", format("<span class=\"verdict {}\">{}</span>", standing, standing));
    out += cell("", html_text(why_text(*node))) + "</tr>\n";
  }
  return out + "</table>\n";
}

// Where many nodes are fit their rows are collapsed, so that the map is not far down the page.
std::string nodes_table(const HealthReport& report) {
  const Exchanges exchanges{exchanges_of_nodes(report, Way::kTcp), exchanges_of_nodes(report, Way::kNccl)};
  const std::vector<const NodeHealth*> all = worst_first(report);
  const std::span<const NodeHealth* const> nodes(all.data(), std::min(all.size(), kPageNodes));
  const std::size_t not_fit = report.nodes.size() - ranks_of(report, Standing::kFit).size();
  const std::size_t open = std::min(nodes.size(), std::max(not_fit, kOpenRows));
  std::string out = "<h2>Nodes, worst first</h2>\n" + nodes_rows(report, nodes.first(open), exchanges);
  if (open < nodes.size()) {
    out += format("<details><summary>{} more nodes that are fit</summary>\n{}</details>\n", nodes.size() - open,
                  nodes_rows(report, nodes.subspan(open), exchanges));
  }
  return out + more(all.size(), kPageNodes, "nodes that are no worse than these");
}

// --- The heat map ----------------------------------------------------------------------------

using Pairs = std::map<std::pair<int, int>, std::vector<const PairHealth*>>;  // the tests of each pair of ranks

bool is_conspicuous(const HealthReport& report, const PairHealth& pair) {
  const auto is_this = [&](const PairTest& link) { return link.low == pair.low && link.high == pair.high; };
  return !pair.passed || std::ranges::any_of(report.slow_links, is_this) ||
         standing_of(report.nodes[static_cast<std::size_t>(pair.low)]) != Standing::kFit ||
         standing_of(report.nodes[static_cast<std::size_t>(pair.high)]) != Standing::kFit;
}

// The ranks of the nodes that the map shows.
std::vector<int> map_nodes(const HealthReport& report) {
  std::set<int> nodes;
  if (report.nodes.size() <= kMapNodes) {
    for (const NodeHealth& node : report.nodes) nodes.insert(node.rank);
    return {nodes.begin(), nodes.end()};
  }
  for (const PairHealth* pair : worst_pairs_first(report)) {
    if (nodes.size() + 2 > kMapNodes) break;
    if (is_conspicuous(report, *pair)) nodes.insert({pair->low, pair->high});
  }
  return {nodes.begin(), nodes.end()};
}

std::string result_text(const HealthReport& report, const PairHealth& pair, const std::optional<double>& usual) {
  if (!pair.passed) return "failed" + (pair.why_not.empty() ? "" : ": " + shown(pair.why_not));
  const Way way = judged_way(report);
  const std::optional<double> busbw = busbw_gbps(report, pair, way);
  std::string out;
  if (busbw) out += format("{} GB/s", figure_text(busbw));
  if (busbw && usual) out += format(" ({:.0f} % of the median)", 100 * *busbw / *usual);
  const auto add_rest = [&](Way other) {
    out += format("{}{} ms", out.empty() ? "" : ", ", figure_text(test_ms(pair, other)));
    const auto& latency_us = other == Way::kNccl ? pair.gpu_latency_us : pair.latency_us;
    if (latency_us) out += format(", latency {} us", figure_text(latency_us));
  };
  add_rest(way);
  const Way other = way == Way::kNccl ? Way::kTcp : Way::kNccl;
  if (const auto beside = pair.gpu_ms ? busbw_gbps(report, pair, other) : std::nullopt) {
    out += format("; over {} {} GB/s", other == Way::kNccl ? "NCCL" : "TCP", figure_text(beside));
    add_rest(other);
  }
  if (!pair.gpu_why_not.empty()) out += "; over NCCL it failed: " + shown(pair.gpu_why_not);
  if (pair.clock_ms) out += format(", clock of node {} ahead by {} ms", pair.high, figure_text(pair.clock_ms));
  return out;
}

// The content of a cell: the worst of all tests between two nodes.
struct Cell {
  bool failed = false;
  std::optional<double> busbw_gbps = {};
  std::size_t colour = 0;
  std::string title;  // escaped
};

Cell cell_of(const HealthReport& report, const std::vector<const PairHealth*>& tests,
             const std::optional<double>& usual) {
  Cell out;
  out.title = html_text(node_text(report, tests.front()->low) + " and " + node_text(report, tests.front()->high));
  for (const PairHealth* test : tests) {
    out.failed = out.failed || !test->passed;
    const std::optional<double> busbw = busbw_gbps(report, *test, judged_way(report));
    if (busbw) out.busbw_gbps = std::min(out.busbw_gbps.value_or(*busbw), *busbw);
    out.title += html_text(format("\nstage {}: {}", test->stage, result_text(report, *test, usual)));
  }
  if (out.busbw_gbps && usual) {
    out.colour = static_cast<std::size_t>(
        std::ranges::count_if(kLimits, [&](double limit) { return *out.busbw_gbps < limit * *usual; }));
  }
  return out;
}

std::string drawn(const Cell& cell, int x, int y, int side) {
  std::string mark;
  const int inset = side / 4;
  const int middle = x + side / 2;
  const auto line = [&](int from_y, int to_y) {
    return format("M{} {}L{} {}", x + inset, from_y, x + side - inset, to_y);
  };
  if (cell.failed) {
    mark = format("<path class=\"cross\" d=\"{}{}\"></path>", line(y + inset, y + side - inset),
                  line(y + side - inset, y + inset));
  } else if (side >= 40) {
    mark = format("<text x=\"{}\" y=\"{}\">{}</text>", middle, y + side / 2 + 4, figure_text(cell.busbw_gbps));
  } else if (cell.colour == std::size(kLimits)) {
    mark = format("<path class=\"slash\" d=\"{}\"></path>", line(y + side - inset, y + inset));
  }
  const std::string kind = cell.failed ? "failed" : format("q{}", cell.colour);
  return format(
      "<g class=\"cell {}\"><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"></rect>{}</g>\n", kind,
      cell.title, x, y, side, side, mark);
}

std::string legend() {
  std::string out = "<p class=\"legend\">";
  const auto entry = [&](const std::string& kind, const std::string& what, std::string_view mark = "") {
    out += format("<span><span class=\"swatch {}\">{}</span>{}</span>\n", kind, mark, what);
  };
  entry("q0", format("from {:.0f} % of the median busbw", 100 * kLimits[0]));
  for (std::size_t i = 1; i < std::size(kLimits); ++i) {
    entry(format("q{}", i), format("from {:.0f} %", 100 * kLimits[i]));
  }
  entry(format("q{}", std::size(kLimits)), "less: slow", "/");
  entry("failed", "failed", "&#215;");
  entry("none", "not tested");
  return out + "</p>\n";
}

std::string heat_map(const HealthReport& report) {
  const std::vector<int> nodes = map_nodes(report);
  std::string out =
      report.by_nccl ? "<h2>All-gather over NCCL between nodes</h2>\n" : "<h2>Exchange between nodes</h2>\n";
  if (nodes.size() < 2) {
    return out + format("<p>{}</p>\n", report.pairs.empty() ? "No two nodes were tested with each other."
                                                            : "No pair of nodes failed or has a node that is not fit.");
  }
  if (nodes.size() < report.nodes.size()) {
    out += format(
        "<p>The map shows {} of {} nodes: those that are not fit or failed a test, and the nodes they were tested "
        "with. If "
        "there are more than {}, it shows the worst.</p>\n",
        nodes.size(), report.nodes.size(), kMapNodes);
  }
  Pairs pairs;
  for (const PairHealth& pair : report.pairs) pairs[{pair.low, pair.high}].push_back(&pair);
  const std::optional<double> usual = median_busbw_gbps(report, judged_way(report));
  const int count = static_cast<int>(nodes.size());
  const int side = count <= 12 ? 52 : count <= 24 ? 30 : 14;
  const bool is_small = side < 20;  // the names of columns are rotated, since they do not fit beside each other
  std::vector<std::string> labels;
  std::size_t longest = 0;
  for (const int rank : nodes) {
    const std::string& name = report.nodes[static_cast<std::size_t>(rank)].name;
    labels.push_back(name.empty() ? format("{}", rank) : format("{} {}", rank, shown(name, kLabelCharacters - 8)));
    longest = std::max(longest, labels.back().size());
  }
  const int left = 16 + 7 * static_cast<int>(longest);
  const int top = is_small ? 44 : 26;
  out += legend();
  out += format(
      "<div class=\"map\"><svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
      "aria-label=\"heat map of busbw between nodes\">\n",
      left + count * side + 2, top + count * side + 2);
  for (int i = 0; i < count; ++i) {
    const int rank = nodes[static_cast<std::size_t>(i)];
    const NodeHealth& node = report.nodes[static_cast<std::size_t>(rank)];
    const char* standing = standing_name(standing_of(node));
    const int at = i * side + side / 2 + 4;
    out += format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", standing, left - 8, top + at,
                  html_text(labels[static_cast<std::size_t>(i)]));
    out += is_small ? format("<text class=\"{}\" transform=\"translate({} {}) rotate(-90)\">{}</text>\n", standing,
                             left + at, top - 6, rank)
                    : format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", standing,
                             left + i * side + side / 2, top - 8, rank);
  }
  for (int row = 0; row < count; ++row) {
    for (int column = 0; column < count; ++column) {
      const int x = left + column * side;
      const int y = top + row * side;
      const auto low_high = std::minmax(nodes[static_cast<std::size_t>(row)], nodes[static_cast<std::size_t>(column)]);
      const auto tests = pairs.find(low_high);
      if (tests != pairs.end()) {
        out += drawn(cell_of(report, tests->second, usual), x, y, side);
      } else {
        out += format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"></rect>\n",
                      row == column ? "self" : "none", x, y, side, side);
      }
    }
  }
  return out + "</svg></div>\n";
}

std::string pairs_table(const HealthReport& report) {
  if (report.pairs.empty()) return {};
  std::string out =
      "<h2>Pairs, worst first</h2>\n<table>\n<tr><th>nodes</th><th class=\"number\">stage</th><th>result</th></tr>\n";
  const std::optional<double> usual = median_busbw_gbps(report, judged_way(report));
  const std::vector<const PairHealth*> pairs = worst_pairs_first(report);
  for (std::size_t i = 0; i < std::min(pairs.size(), kPagePairs); ++i) {
    out += "<tr>" + cell("node", rank_name(report, pairs[i]->low) + " and " + rank_name(report, pairs[i]->high));
    out += cell("number", format("{}", pairs[i]->stage));
    out += cell("", html_text(result_text(report, *pairs[i], usual))) + "</tr>\n";
  }
  return out + "</table>\n" + more(pairs.size(), kPagePairs, "tests that are no worse than these; health.json has all");
}

// --- What to do ------------------------------------------------------------------------------

std::string sentences(const HealthReport& report) {
  std::vector<std::string> all = link_sentences(report);
  const std::size_t links = all.size();
  if (links > kPageLinks) all.resize(kPageLinks);
  if (std::string text = undetermined_sentence(report); !text.empty()) all.push_back(std::move(text));
  if (all.empty()) return {};
  std::string out = "<h2>What to check</h2>\n<ul>\n";
  for (const std::string& text : all) out += format("<li>{}</li>\n", html_text(text));
  return out + "</ul>\n" + more(links, kPageLinks, "links");
}

std::string gpus(const HealthReport& report) {
  const std::vector<std::string> all = gpu_sentences(report);
  if (all.empty()) return {};
  std::string out = "<h2>GPUs</h2>\n<ul>\n";
  for (std::size_t i = 0; i < std::min(all.size(), kPageLinks); ++i) out += format("<li>{}</li>\n", html_text(all[i]));
  return out + "</ul>\n" + more(all.size(), kPageLinks, "sets of GPUs");
}

std::string findings(const HealthReport& report) {
  const std::vector<SharedFinding> all = shared_findings(report);
  if (all.empty()) return {};
  std::string out =
      "<h2>Findings</h2>\n<table>\n"
      "<tr><th>severity</th><th>nodes</th><th>what</th><th>where</th><th>what to do</th></tr>\n";
  for (std::size_t i = 0; i < std::min(all.size(), kPageFindings); ++i) {
    const auto& [finding, nodes] = all[i];
    out += "<tr>" + cell("", severity_name(finding.severity)) + cell("", html_text(nodes_text(nodes)));
    out += cell("", html_text(shown(finding.what))) + cell("", html_text(shown(finding.where)));
    out += cell("", html_text(shown(finding.remedy))) + "</tr>\n";
  }
  return out + "</table>\n" + more(all.size(), kPageFindings, "findings");
}

constexpr std::string_view kHowToReadGpus =
    "<li>The figures of a node's <b>GPUs</b> are those of its slowest GPU: a product of bfloat16 matrices by cuBLASLt, "
    "bytes read and written in a copy within the GPU, copies from and to page-locked memory of the host. <b>NCCL "
    "busbw</b>: an all-gather of all GPUs of two nodes, by nccl-tests' formula for as many ranks; the best of the "
    "node's "
    "tests. <b>NCCL latency</b>: an all-gather of 8 bytes from each GPU; the least of the node's tests.</li>\n";

std::string how_to_read(const HealthReport& report) {
  const JudgeSettings& settings = report.settings;
  return format(
      "<h2>How to read this</h2>\n<ul>\n"
      "<li><b>faulty</b>: unfit by itself, or none of its tests passed, though one was with a node that is known to be "
      "good. <b>undetermined</b>: none of its tests passed, and none was with such a node. <b>slow</b>: more than {0} "
      "times the median, and at least {1} ms above it for compute, {2} ms for an exchange.</li>\n"
      "<li>A bad or slow <b>link</b> is between two nodes that both work well with other nodes.</li>\n"
      "<li><b>busbw</b>: bytes of one exchange ({3} each way) over its time, 10<sup>9</sup> bytes/s, as nccl-tests "
      "computes it for an all-gather of two ranks. A pair that was tested more than once shows its worst result.</li>\n"
      "<li><b>compute</b>: one matrix product. <b>memory</b>: bytes read and written. <b>latency</b>: one byte, one "
      "way; the least of the node's tests. Hover over a cell of the map for its figures.</li>\n{4}</ul>\n",
      settings.slow_factor, settings.compute_floor_ms, settings.exchange_floor_ms, block_text(report.exchange_bytes),
      has_gpus(report) ? kHowToReadGpus : "");
}

}  // namespace

std::string health_page(const HealthReport& report) {
  std::string out = html_beginning("Health of " + html_text(shown(report.job)), kStyle);
  out += "<h1>Check before training</h1>\n";
  out += headline(report) + tiles(report) + sentences(report) + nodes_table(report) + heat_map(report);
  out += pairs_table(report) + gpus(report) + findings(report) + how_to_read(report);
  out += html_end();
  return out;
}

}  // namespace elastic::health
