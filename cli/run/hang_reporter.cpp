#include "cli/run/hang_reporter.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "cli/run/whole_file.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/base/wall_time.h"
#include "src/process/clock.h"
#include "src/report/hang_html.h"

namespace elastic::run {
namespace {

constexpr std::size_t kPathBytes = 4096;

Json fields_of(std::string_view state, std::int64_t round, std::int64_t silent_ms) {
  return Json::object().set("state", state).set("round", round).set("milliseconds", silent_ms);
}

// What programs get of a verdict; hang.json has all.
Json fields_of(const report::Hang& hang) {
  Json ranks = Json::array();
  Json nodes = Json::array();
  std::string last_node;
  for (const report::HangCulprit& culprit : hang.culprits) {
    if (culprit.rank) ranks.push(*culprit.rank);
    // The ranks of a node follow each other.
    if (!culprit.node.empty() && culprit.node != std::exchange(last_node, culprit.node)) nodes.push(culprit.node);
  }
  return fields_of("told", hang.round, report::ms_of(hang.silent_s))
      .set("limit_ms", report::ms_of(hang.limit_s))
      .set("rule", hang.verdict.rule)
      .set("verdict", hang.verdict.name)
      .set("fault", hang.fault)
      .set("cause", hang.cause)
      .set("ranks_at_fault", std::move(ranks))
      .set("nodes_at_fault", std::move(nodes))
      .set("evidence", hang.evidence ? Json(*hang.evidence) : Json())
      .set("action", hang.action ? Json(*hang.action) : Json());
}

// Writes both files. Returns what went wrong; empty if nothing did.
std::string write_files(const std::string& directory, const report::Hang& hang, const std::string& run_id,
                        int utc_offset_s) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return format("cannot make {}: {}", printable(directory, kPathBytes), error.message());
  const std::pair<const char*, std::string> files[] = {
      {"/hang.json", report::hang_json(hang, run_id)},
      {"/hang.html", report::hang_page(hang, run_id, utc_offset_s)},
  };
  for (const auto& [name, text] : files) {
    const std::string path = directory + name;
    const int failed = replace_file(path, text);
    if (failed != 0) return format("cannot write {}: {}", printable(path, kPathBytes), errno_text(failed));
  }
  return {};
}

}  // namespace

HangReporter::HangReporter(net::SideThread& files, std::string run_id) : files_(files), run_id_(std::move(run_id)) {}

void HangReporter::round_began(std::int64_t round, std::string directory) {
  round_ = round;
  directory_ = std::move(directory);
  if (!last_ || last_->round == round || last_->end != report::HangEnd::kOpen) return;
  last_->end = report::HangEnd::kEnded;
  write();
}

void HangReporter::not_armed(std::int64_t round, std::string_view text) const {
  log::write_event(log::Level::kInfo, "hang_not_watched", text, Json::object().set("round", round));
}

void HangReporter::suspected(std::int64_t round, std::int64_t silent_ms, std::int64_t limit_ms) const {
  log::write_event(log::Level::kInfo, "hang",
                   format("round {}: no progress for {}, longer than {}: looking whether the job hangs", round,
                          span_text(silent_ms), span_text(limit_ms)),
                   fields_of("suspect", round, silent_ms).set("limit_ms", limit_ms));
}

void HangReporter::continued(std::int64_t round, std::int64_t silent_ms, std::string_view cause) {
  continued_round_ = round;
  log::write_event(
      log::Level::kWarning, "hang",
      format("round {}: no progress for {}: {}; sending SIGCONT, once: if there is no progress then, the round ends",
             round, span_text(silent_ms), cause),
      fields_of("continued", round, silent_ms).set("cause", cause));
}

void HangReporter::report_verdict(std::int64_t round, std::string_view screen, report::Hang hang) {
  const bool has_files = !directory_.empty() && round == round_;
  continued_round_.reset();
  hang.round = round;
  hang.wall_ms = process::wall_clock_ms();
  hang.end = report::HangEnd::kOpen;
  hang.recovered_after_s.reset();
  hang.evidence = has_files ? std::optional(directory_) : std::nullopt;
  last_ = std::move(hang);
  last_directory_ = has_files ? directory_ : std::string();

  const std::size_t end = screen.find('\n');
  std::string first(screen.substr(0, end));
  if (first.empty()) first = format("no progress for {}: {}", span_text(report::ms_of(last_->silent_s)), last_->cause);
  log::write_event(log::Level::kWarning, "hang", first, fields_of(*last_));
  std::string rest(end == std::string_view::npos ? std::string_view() : screen.substr(end + 1));
  if (!rest.empty() && !rest.ends_with('\n')) rest += '\n';
  if (has_files) rest += format("  evidence: {} (open hang.html)\n", printable(directory_, kPathBytes));
  if (!rest.empty()) log::lines(rest);
  write();
}

void HangReporter::recovered(std::int64_t round, std::int64_t silent_ms) {
  log::write_event(log::Level::kWarning, "hang",
                   format("round {}: the job makes progress again, after {}", round, span_text(silent_ms)),
                   fields_of("recovered", round, silent_ms));
  if (!last_ || last_->round != round || last_->end != report::HangEnd::kOpen) return;
  last_->end = report::HangEnd::kRecovered;
  last_->recovered_after_s = static_cast<double>(silent_ms) / 1000;
  write();
}

void HangReporter::withdrawn(std::int64_t round, std::int64_t silent_ms) {
  const bool was_warned = std::exchange(continued_round_, std::nullopt) == round;
  log::write_event(was_warned ? log::Level::kWarning : log::Level::kInfo, "hang",
                   format("round {}: there is progress after {}: the job does not hang", round, span_text(silent_ms)),
                   fields_of("withdrawn", round, silent_ms));
}

void HangReporter::write() const {
  if (last_directory_.empty()) return;
  const auto problem = std::make_shared<std::string>();
  files_.post(
      last_directory_,
      [problem, directory = last_directory_, hang = *last_, run_id = run_id_, utc_offset_s = process::utc_offset_s()] {
        *problem = write_files(directory, hang, run_id, utc_offset_s);
      },
      [problem] {
        if (!problem->empty()) log::warning("hang_report", *problem);
      });
}

}  // namespace elastic::run
