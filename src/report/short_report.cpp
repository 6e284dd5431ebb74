#include "src/report/short_report.h"

#include <algorithm>
#include <string_view>

#include "src/base/program_name.h"
#include "src/base/screen_text.h"
#include "src/base/text.h"
#include "src/base/wall_time.h"
#include "src/report/python_traceback.h"
#include "src/report/root_cause.h"

namespace elastic::report {
namespace {

// These bounds together leave room for every line of the report.
constexpr std::size_t kReasonBytes = 700;
constexpr std::size_t kHostBytes = 255;
constexpr std::size_t kWordsBytes = 200;
constexpr std::size_t kCauseBytes = 150;
constexpr std::size_t kColumns = 96;  // behind two blanks
constexpr std::string_view kIndent = "    ";

std::string ended_line(const JobReport& report) {
  const std::string reason = printable(report.reason, kReasonBytes);
  if (report.outcome == JobReport::Outcome::kStopped) {
    if (report.left_behind.empty()) return format("{}: {}; all workers have ended\n", program_name(), reason);
    return format("{}: {}; did not exit after SIGKILL: {}\n", program_name(), reason,
                  printable(report.left_behind, kReasonBytes));
  }
  if (!reason.empty()) return format("{}: error: {}\n", program_name(), reason);
  if (report.max_restarts == 0) return format("{}: error: the job failed; --max-restarts is 0\n", program_name());
  return format("{}: error: the job failed; {} of {} restarts were used\n", program_name(), report.restarts_used,
                report.max_restarts);
}

// The exception that ended the worker, or else the last line that it wrote.
std::string last_words(const FailedWorker& worker) {
  if (worker.error) {
    const std::string exception = exception_of(worker.error->traceback);
    return exception.empty() ? worker.error->message : exception;
  }
  const std::string tail = without_colours(worker.tail.bytes);
  if (const auto traceback = last_traceback(tail)) return traceback->exception;
  const LastLines last = last_lines(trim(tail), 1, kWordsBytes);
  return last.lines.empty() ? "" : last.lines.back();
}

std::string quoted_words(const FailedWorker& worker) {
  const std::string words(trim(last_words(worker)));
  return printable(screen_text(words.substr(0, words.find('\n'))), kWordsBytes);
}

std::string at_and_where(const JobReport& report, const FailedWorker& first) {
  std::string out = format("{}at {} ({})", kIndent, wall_time_ms(first.wall_ms, report.utc_offset_s),
                           utc_offset_text(report.utc_offset_s));
  if (!first.host.empty()) out += " on " + printable(first.host, kHostBytes);
  return out + "\n";
}

std::string cause_lines(const RootCause& root_cause, const FailedWorker& first, const std::string& executable) {
  const std::string whose =
      root_cause.worker == &first ? "" : format("{} {}: ", root_cause.worker->name(), how_it_ended(*root_cause.worker));
  std::string out =
      format("  {}\n{}{}: {}\n", wrap("likely cause: " + whose + root_cause.cause.sentence, kColumns, kIndent.size()),
             kIndent, root_cause.cause.source, root_cause.cause.evidence);
  if (root_cause.cause.evidence.contains("ModuleNotFoundError") && !executable.empty()) {
    out += format("{}Python executable: {}\n", kIndent, printable(executable, kHostBytes));
  }
  return out;
}

// What the job waited for when it ended; empty unless it hung then.
std::string hang_lines(const JobReport& report) {
  if (!report.hang || report.hang->end != HangEnd::kOpen) return {};
  const auto silent_ms = ms_of(report.hang->silent_s);
  const std::string text =
      format("hang: no progress for {} when it was told: {}", span_text(silent_ms),
             printable(report.hang->cause.empty() ? "the cause is not known" : report.hang->cause, kCauseBytes));
  return format("  {}\n", wrap(text, kColumns, kIndent.size()));
}

// The report in one line, for nodes that have nothing to add.
std::string told_elsewhere(const JobReport& report, const FailedWorker& first,
                           const std::optional<RootCause>& root_cause) {
  std::string line = std::string(trim(ended_line(report)));
  line += format("; first failure: {}{} {}", first.name(),
                 first.host.empty() ? "" : " on " + printable(first.host, kHostBytes), how_it_ended(first));
  const std::string words = quoted_words(first);
  if (!words.empty()) {
    line += ": " + words;
  } else if (root_cause && root_cause->worker == &first) {
    line += ": " + root_cause->cause.sentence;
  }
  return line + "; see the report of that node\n";
}

}  // namespace

std::string how_it_ended(const FailedWorker& worker) {
  if (worker.error_came_first && worker.exit.signal != 0)
    return worker.exit.text() + ", after it had written its error file";
  if (worker.oom_evidence.empty()) return worker.exit.text() + (worker.timer ? " (its timer expired)" : "");
  return worker.exit.text() +
         (worker.exit.signal != 0 ? " (out of memory)" : "; one of its processes was killed (out of memory)");
}

std::string short_report(const JobReport& report) {
  if (report.outcome == JobReport::Outcome::kSucceeded) return {};
  const FailedWorker* first = report.first_failure();
  if (report.outcome == JobReport::Outcome::kStopped || first == nullptr)
    return ended_line(report) + hang_lines(report);
  const auto root_cause = find_root_cause(report);
  if (report.first_failed_elsewhere) {
    const std::string line = told_elsewhere(report, *first, root_cause);
    return root_cause && root_cause->worker != first ? line + cause_lines(*root_cause, *first, report.executable)
                                                     : line;
  }
  std::string out = ended_line(report) + format("  first failure: {} {}\n", first->name(), how_it_ended(*first));
  out += at_and_where(report, *first);
  const std::string words = quoted_words(*first);
  const bool are_the_evidence = root_cause && root_cause->cause.evidence.ends_with(words);
  if (!words.empty() && !are_the_evidence) out += format("{}{}\n", kIndent, words);
  if (root_cause) out += cause_lines(*root_cause, *first, report.executable);
  out += hang_lines(report);
  const std::string logs = format("  log directory: {}\n", printable(report.log_directory, kShortReportBytes));
  if (!report.log_directory.empty() && out.size() + logs.size() <= kShortReportBytes) out += logs;
  return out;
}

}  // namespace elastic::report
