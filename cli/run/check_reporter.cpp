#include "cli/run/check_reporter.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "health/check/network_check.h"
#include "health/report/dlrover_lines.h"
#include "health/report/health_html.h"
#include "health/report/health_json.h"
#include "health/report/health_table.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/output/terminal.h"
#include "src/process/clock.h"

namespace elastic::run {
namespace {

// With more nodes DLRover's lines are left out, each of which names all nodes.
constexpr std::size_t kNodesInALine = 1024;

health::HealthReport report_of(const std::string& job, const coordinator::CheckJudged& check) {
  using Kind = health::CheckPlan::Unhealthy::Kind;
  health::HealthReport report = health::NetworkCheck().report(check.nodes, check.results);
  report.job = job;
  report.round = check.round;
  report.wall_ms = process::wall_clock_ms();
  report.phase_ms.assign(check.phase_ms.begin(), check.phase_ms.end());
  for (const health::CheckPlan::Unhealthy& unhealthy : check.unhealthy) {
    const bool trains =
        unhealthy.kind == Kind::kLink || (unhealthy.kind == Kind::kStraggler && !check.rules.excludes_stragglers);
    if (!trains && !check.rules.only) report.nodes.at(static_cast<std::size_t>(unhealthy.node_rank)).left_out = true;
  }
  return report;
}

bool is_worth_a_word(const health::HealthReport& report) {
  const auto is_bad = [](const health::Finding& finding) { return finding.severity != health::Severity::kNote; };
  return !report.bad_links.empty() || !report.slow_links.empty() ||
         std::ranges::any_of(report.nodes, [&](const health::NodeHealth& node) {
           return health::standing_of(node) != health::Standing::kFit || std::ranges::any_of(node.findings, is_bad);
         });
}

Json list_of(const std::vector<int>& numbers) {
  Json out = Json::array();
  for (const int number : numbers) out.push(number);
  return out;
}

// The fields of the event `checked`; health.json has all.
Json in_short(const health::HealthReport& report) {
  using health::Standing;
  Json left_out = Json::array();
  for (const health::NodeHealth& node : report.nodes) {
    if (node.left_out) left_out.push(node.name);
  }
  const auto took_ms = health::took_ms(report);
  const auto busbw = health::median_busbw_gbps(report, health::judged_way(report));
  return Json::object()
      .set("round", report.round)
      .set("milliseconds", took_ms ? Json(*took_ms) : Json())
      .set("nodes", static_cast<std::int64_t>(report.nodes.size()))
      .set("faulty", list_of(health::ranks_of(report, Standing::kFaulty)))
      .set("undetermined", list_of(health::ranks_of(report, Standing::kUndetermined)))
      .set("slow", list_of(health::ranks_of(report, Standing::kSlow)))
      .set("left_out", std::move(left_out))
      .set("bad_links", static_cast<std::int64_t>(report.bad_links.size()))
      .set("slow_links", static_cast<std::int64_t>(report.slow_links.size()))
      .set("findings", static_cast<std::int64_t>(health::shared_findings(report).size()))
      .set("median_busbw_gbps", busbw ? Json(*busbw) : Json());
}

// The user has asked for this measurement: it is logged at every level, whatever else the check has found.
void tell_all_gather(const health::HealthReport& report) {
  const health::AllGather& gather = *report.all_gather;
  if (!gather.ms) return log::warning("all_gather", health::all_gather_sentence(report));
  log::answer("all_gather", health::all_gather_sentence(report));
  log::info("node_check", health::allgather_line(gather.nodes, gather.bytes, *gather.ms));
}

std::string write_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return errno_text(errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written ? "" : errno_text(errno);
}

}  // namespace

CheckReporter::CheckReporter(net::SideThread& files, std::shared_ptr<output::RunDirectory> logs, std::string page)
    : files_(&files), logs_(std::move(logs)), page_(std::move(page)) {}

health::HealthReport CheckReporter::judged(const std::string& job, const coordinator::CheckJudged& check) {
  const health::HealthReport report = report_of(job, check);
  const bool is_news = is_worth_a_word(report);
  if (is_news) {
    log::write_event(log::Level::kWarning, "checked", health::sentence(report), in_short(report));
  } else {
    log::write_answer("checked", health::sentence(report), in_short(report));
  }
  if (is_news || check.rules.only) log::lines(health::health_table(report, output::terminal_columns()));
  if (report.nodes.size() <= kNodesInALine) {
    for (const std::string& line : health::dlrover_lines(report)) log::info("node_check", line);
  }
  if (report.all_gather) tell_all_gather(report);
  if (!page_.empty()) write(page_, health::health_page(report));
  if (logs_ && (!logs_->is_temporary() || is_news)) write(logs_->path() + "/health.json", health::health_json(report));
  return report;
}

void CheckReporter::write(const std::string& path, std::string text) {
  const auto problem = std::make_shared<std::string>();
  files_->post(
      path, [path, problem, text = std::move(text)] { *problem = write_file(path, text); },
      [path, problem] {
        if (!problem->empty())
          log::warning("health_report", format("{} cannot be written: {}", printable(path), *problem));
      });
}

}  // namespace elastic::run
