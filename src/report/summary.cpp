#include "src/report/summary.h"

#include <algorithm>
#include <csignal>
#include <vector>

#include "src/base/program_name.h"
#include "src/base/screen_text.h"
#include "src/base/signals.h"
#include "src/base/text.h"
#include "src/base/wall_time.h"
#include "src/report/python_traceback.h"
#include "src/report/root_cause.h"
#include "src/report/short_report.h"

namespace elastic::report {
namespace {

constexpr std::size_t kPathBytes = 4096;
constexpr std::size_t kRanksBytes = 800;
constexpr std::size_t kColumns = 96;  // behind two blanks
constexpr std::string_view kIndent = "    ";

std::string indented(const LastLines& last) {
  std::string out;
  for (const std::string& line : last.lines) out += line.empty() ? "\n" : format("{}{}\n", kIndent, line);
  return out;
}

std::string traceback_lines(std::string_view traceback, std::string_view source) {
  const LastLines last = last_lines(traceback, kSummaryTracebackLines, kSummaryLineBytes);
  const std::string left_out =
      last.left_out == 0 ? "" : format("; {} left out", counted(last.left_out, "earlier line"));
  return format("  Python traceback ({}{}):\n", source, left_out) + indented(last);
}

// "its last 20 lines of stderr (131 earlier lines left out; from /logs/...):"
std::string tail_lines(const FailedWorker& worker) {
  const StderrTail& tail = worker.tail;
  const LastLines last = last_lines(tail.bytes, kSummaryTailLines, kSummaryLineBytes);
  if (last.lines.empty() && !tail.none_because.empty()) {
    return format("  stderr was not kept: {}\n", printable(tail.none_because, kPathBytes));
  }
  if (last.lines.empty()) return "  it wrote nothing to stderr\n";
  std::vector<std::string> notes;
  const std::uint64_t before = last.left_out + tail.lines_before.value_or(0);
  const std::string_view at_least = tail.lines_before ? "" : "at least ";
  if (before > 0) {
    notes.push_back(format("{}{} left out", at_least, counted(before, "earlier line")));
  } else if (!tail.lines_before) {
    notes.push_back("there may be earlier lines");
  }
  if (!tail.source.empty()) notes.push_back("from " + printable(tail.source, kPathBytes));
  const std::string aside = notes.empty() ? "" : " (" + join(notes, "; ") + ")";
  return format("  its last {} of stderr{}:\n", counted(last.lines.size(), "line"), aside) + indented(last);
}

// The part of stderr behind a traceback that has been shown.
std::string lines_after(std::string_view bytes) {
  while (bytes.starts_with('\n')) bytes.remove_prefix(1);
  const LastLines last = last_lines(bytes, kSummaryTailLines, kSummaryLineBytes);
  if (last.lines.empty()) return {};
  const std::string left_out =
      last.left_out == 0 ? "" : format(" ({} left out)", counted(last.left_out, "earlier line"));
  return format("  stderr after the traceback{}:\n", left_out) + indented(last);
}

// The traceback, and the end of stderr where that says more.
std::string last_words(const FailedWorker& worker) {
  const std::string plain = without_colours(worker.tail.bytes);
  const std::string_view tail = plain;
  const auto found = last_traceback(tail);
  if (worker.error && !worker.error->traceback.empty()) {
    std::string out = traceback_lines(worker.error->traceback, "error.json");
    const bool said_twice = found && found->exception == exception_of(worker.error->traceback);
    if (said_twice) return out + lines_after(tail.substr(found->end));
    return trim(tail).empty() ? out : out + tail_lines(worker);
  }
  std::string out;
  if (worker.error && !worker.error->message.empty()) {
    out += format("  error.json: {}\n", printable(worker.error->message, kSummaryLineBytes));
  }
  if (!found) return out + tail_lines(worker);
  return out + traceback_lines(found->text, "stderr") + lines_after(tail.substr(found->end));
}

std::string timer_lines(const ExpiredTimer& timer) {
  if (timer.stack.empty()) return {};
  std::string out = "  Python stack when its timer expired (newest call first):\n";
  for (const HangFrame& frame : timer.stack) {
    out += format("{}{}  {}:{}\n", kIndent, printable(frame.function), printable(frame.file, kPathBytes), frame.line);
  }
  return out;
}

std::string earlier_rounds(const JobReport& report) {
  std::vector<std::string> lines;
  for (const RoundReport& round : report.rounds) {
    for (const FailedWorker& worker : round.failures) {
      if (worker.stopped_by_us) continue;
      lines.push_back(format("  earlier, in round {}: {} {}\n", round.round, worker.name(), how_it_ended(worker)));
      break;
    }
  }
  const std::size_t skipped = lines.size() - std::min(lines.size(), kSummaryEarlierRounds);
  std::string out;
  for (std::size_t i = skipped; i < lines.size(); ++i) out += lines[i];
  if (skipped > 0) out += format("  and in {}\n", counted(skipped, "earlier round"));
  return out;
}

std::string consequences(const JobReport& report, const FailedWorker& first) {
  std::string out;
  std::size_t shown = 0;
  std::vector<int> more;
  std::vector<int> stopped;
  for (const FailedWorker& worker : report.failures) {
    if (&worker == &first) continue;
    if (worker.stopped_by_us) {
      stopped.push_back(worker.rank);
    } else if (shown < kSummaryOtherFailures) {
      out += format("  also failed:   {} {}, {} later\n", worker.name(), how_it_ended(worker),
                    span_text(worker.wall_ms - first.wall_ms));
      ++shown;
    } else {
      more.push_back(worker.rank);
    }
  }
  const auto ranks = [&](std::string_view lead, const std::vector<int>& which) {
    if (which.empty()) return;
    std::string names = rank_ranges(which);
    // If every other one of thousands of ranks failed, they cannot be written as ranges.
    if (names.size() > kRanksBytes) {
      names = format("{}, ... ({} in all)", names.substr(0, names.rfind(',', kRanksBytes)), which.size());
    }
    const std::string line = format("{}{} {}", lead, plural("rank", which.size()), names);
    out += "  " + wrap(line, kColumns, kIndent.size()) + "\n";
  };
  ranks(format("and {} more failed: ", more.size()), more);
  ranks("stopped because of this: ", stopped);
  return out;
}

std::string error_file_lines(const JobReport& report, const FailedWorker& first) {
  if (first.error_file.empty()) {
    return "  error file: none (decorate the script's main function with torch's @record to get one)\n";
  }
  const bool elsewhere = !first.host.empty() && !report.host.empty() && first.host != report.host;
  std::string out = format("  error file{}: {}\n", elsewhere ? " on " + printable(first.host) : "",
                           printable(first.error_file, kPathBytes));
  if (!first.error_file_problem.empty()) {
    out += format("{}it cannot be read: {}\n", kIndent, printable(first.error_file_problem, kPathBytes));
  }
  return out;
}

// What a worker has left: its core dump, its traceback or its last lines, its error file.
std::string remains(const JobReport& report, const FailedWorker& worker, std::string_view role) {
  std::string out = format("{}: {}, {}:\n", program_name(), role, worker.name());
  if (worker.start == WorkerStart::kWarm) {
    out += "  it was started warm (--warm-workers=off starts fresh interpreters only)\n";
  }
  if (!worker.core_file.empty()) out += format("  core: {}\n", printable(worker.core_file, kPathBytes));
  if (worker.timer) out += timer_lines(*worker.timer);
  return out + last_words(worker) + error_file_lines(report, worker);
}

constexpr std::size_t kMaxWidth = 60;
constexpr std::size_t kNameBytes = 4096;
// The last line of the traceback above torchrun's block, by which tools find it; it has a blank at its end.
constexpr std::string_view kException = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ";

// A signal's name in Python's signal.Signals; empty where it has none.
std::string python_signal_name(int number) {
  if (number == SIGIO) return "SIGIO";  // signal_name() has it as SIGPOLL
  if (number == SIGRTMAX) return "SIGRTMAX";
  const std::string name = signal_name(number);
  return name.starts_with("SIG") && !name.contains('+') ? name : "";
}

std::string without_middle(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  // More of the end is kept than of the beginning, for it says more.
  const std::string_view head = text.substr(0, text.substr(0, max_bytes / 4).rfind('\n') + 1);
  const std::string_view tail = last_bytes(text, max_bytes - max_bytes / 4);
  return format("{}[... {} bytes left out ...]\n{}", head, text.size() - head.size() - tail.size(), tail);
}

std::string message_of(const FailedWorker& worker, std::size_t max_bytes) {
  if (worker.error && !worker.error->plain_message) {
    const ErrorFile& error = *worker.error;
    const std::string& said = !error.traceback.empty() ? error.traceback : error.message;
    if (said.empty()) return "<N/A>";
    return replace_all(screen_text(without_middle(said, max_bytes)), "\n", "\n  ");
  }
  if (worker.error && !worker.error->message.empty()) {
    return screen_text(without_middle(worker.error->message, max_bytes));
  }
  const int code = worker.exit.python_code();
  if (code >= 0) {
    return "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";
  }
  const std::string name = python_signal_name(-code);
  return format("Signal {} ({}) received by PID {}", -code, name.empty() ? "<N/A>" : name, worker.pid);
}

std::string block_of(const FailedWorker& worker, std::size_t index, int utc_offset_s, std::size_t max_bytes) {
  // The time by the worker's error.json, where it has one.
  const std::int64_t own_ms = worker.error ? worker.error->timestamp_s * 1000 : 0;
  const int code = worker.exit.python_code();
  const std::string signal = code < 0 ? python_signal_name(-code) : "";
  std::string out = format("[{}]:\n", index);
  out += format("  time      : {}\n", wall_time(own_ms > 0 ? own_ms : worker.wall_ms, utc_offset_s, '_'));
  out += format("  host      : {}\n", printable(worker.host, kNameBytes));
  out += format("  rank      : {} (local_rank: {})\n", worker.rank, worker.local_rank);
  out += format("  exitcode  : {} (pid: {}) {}\n", code, worker.pid, signal.empty() ? "" : " (" + signal + ")");
  out += format("  error_file: {}\n", worker.error_file.empty() ? "<N/A>" : printable(worker.error_file, kNameBytes));
  return out + format("  traceback : {}", message_of(worker, max_bytes));
}

std::size_t widest_line(std::string_view text) {
  std::size_t widest = 0;
  for (const std::string_view line : lines_of(text)) widest = std::max(widest, character_count(line));
  return widest;
}

// Chooses the failures that are shown: all, or as many as the bound allows, those that failed by themselves before the
// others.
std::vector<bool> choose(const std::vector<FailedWorker>& failures) {
  std::vector<bool> shown(failures.size(), false);
  std::size_t left = kBlockFailures;
  for (const bool stopped : {false, true}) {
    for (std::size_t i = 0; i < failures.size() && left > 0; ++i) {
      if (failures[i].stopped_by_us != stopped) continue;
      shown[i] = true;
      --left;
    }
  }
  return shown;
}

}  // namespace

std::string failure_summary(const JobReport& report) {
  const std::string last = short_report(report);
  const FailedWorker* first = report.first_failure();
  if (report.outcome != JobReport::Outcome::kFailed || report.first_failed_elsewhere) return last;
  if (first == nullptr) return consequences(report, FailedWorker{}) + last;
  std::string out = torchrun_block(report) + "\n" + remains(report, *first, "the first failure");
  const auto root_cause = find_root_cause(report);
  if (root_cause && root_cause->worker != first) out += remains(report, *root_cause->worker, "the likely cause");
  out += consequences(report, *first);
  out += earlier_rounds(report);
  if (!report.left_behind.empty()) {
    out += "  " + wrap("did not exit after SIGKILL: " + report.left_behind, kColumns, kIndent.size()) + "\n";
  }
  return out + "\n" + last;
}

std::string torchrun_block(const JobReport& report) {
  const FailedWorker* root = report.first_failure();
  if (root == nullptr) return {};
  const std::string title = printable(report.title, kNameBytes) + " FAILED";
  std::size_t width = character_count(title);
  std::string root_block;
  std::vector<std::string> others;
  std::size_t left_out = 0;
  const std::vector<bool> shown = choose(report.failures);
  for (std::size_t i = 0; i < report.failures.size(); ++i) {
    if (!shown[i]) {
      ++left_out;
      continue;
    }
    const FailedWorker& worker = report.failures[i];
    const bool is_root = &worker == root;
    std::string block = block_of(worker, i, report.utc_offset_s, is_root ? kBlockRootBytes : kBlockOtherBytes);
    width = std::max(width, widest_line(block));
    if (is_root) {
      root_block = std::move(block);
    } else {
      others.push_back(std::move(block));
    }
  }
  if (others.empty()) others.push_back("  <NO_OTHER_FAILURES>");
  if (left_out > 0) others.push_back(format("  <{}_MORE_FAILURES>", left_out));
  width = std::min(width, kMaxWidth);
  const std::string border(width, '=');
  const std::string section(width, '-');
  return format("{}\n{}\n{}\n{}\nFailures:\n{}\n{}\nRoot Cause (first observed failure):\n{}\n{}\n", kException, border,
                title, section, join(others, "\n"), section, root_block, border);
}

}  // namespace elastic::report
