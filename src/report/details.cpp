#include "src/report/details.h"

#include <algorithm>
#include <utility>

#include "src/report/failure_json.h"
#include "src/report/merge.h"

namespace elastic::report {
namespace {

// Shortens each text to at most `bytes`; its end is kept, which says most.
void shorten(FailedWorker& worker, std::size_t bytes) {
  const auto keep_end = [bytes](std::string& text) {
    if (text.size() > bytes) text.erase(0, text.size() - bytes);
  };
  if (worker.tail.bytes.size() > bytes) {
    keep_end(worker.tail.bytes);
    worker.tail.lines_before.reset();  // the lines that were cut are not counted
  }
  keep_end(worker.kernel_log);
  if (worker.timer) shorten_stack(*worker.timer, bytes);
  if (!worker.error) return;
  keep_end(worker.error->traceback);
  keep_end(worker.error->message);
}

}  // namespace

std::string details_of(FailedWorker worker, const std::string& run_id, std::size_t most_bytes) {
  JobReport report{.run_id = run_id, .failures = {std::move(worker)}};
  for (std::size_t bytes = most_bytes; bytes > 0; bytes /= 2) {
    shorten(report.failures.front(), bytes);
    if (std::string text = failure_json(report); text.size() <= most_bytes) return text;
  }
  return "";
}

void add_details(JobReport& report, std::string_view details) {
  if (details.empty()) return;
  const auto told = parse_failure_json(details, "details");
  if (!told || told->run_id != report.run_id) return;
  for (const FailedWorker& worker : told->failures) {
    const auto known =
        std::ranges::find_if(report.failures, [&](const FailedWorker& one) { return are_one(one, worker); });
    if (known == report.failures.end()) continue;
    complete(*known, worker);
    if (known->tail.bytes.empty()) known->tail = worker.tail;  // this includes why there is none
  }
}

}  // namespace elastic::report
