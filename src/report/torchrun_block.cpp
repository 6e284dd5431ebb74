#include "src/report/torchrun_block.h"

#include <algorithm>
#include <csignal>
#include <vector>

#include "src/base/screen_text.h"
#include "src/base/signals.h"
#include "src/base/text.h"
#include "src/base/wall_time.h"

namespace elastic::report {
namespace {

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
