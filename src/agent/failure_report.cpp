#include "src/agent/failure_report.h"

#include <vector>

#include "src/base/text.h"

namespace elastic::agent {
namespace {

constexpr std::size_t kPathBytes = 4096;

using protocol::Verdict;
using protocol::WorkerFailure;

std::string headline(const Verdict& verdict, int max_restarts) {
  if (verdict.outcome == Verdict::Outcome::kStopped) {
    if (verdict.left_behind.empty()) return format("elastic-run: {}; all workers have ended\n", verdict.reason);
    return format("elastic-run: {}; killed and left behind: {}\n", verdict.reason, verdict.left_behind);
  }
  if (!verdict.reason.empty()) return format("elastic-run: error: {}\n", verdict.reason);
  if (max_restarts == 0) return "elastic-run: error: the job failed; --max-restarts is 0\n";
  return format("elastic-run: error: the job failed; {} of {} restarts were used\n",
                verdict.restarts_used, max_restarts);
}

}  // namespace

std::string failure_report(const Verdict& verdict, int max_restarts, const LogPlaces& places) {
  if (verdict.outcome == Verdict::Outcome::kSucceeded) return {};
  std::string out = headline(verdict, max_restarts);
  if (verdict.outcome == Verdict::Outcome::kStopped) return out;
  std::vector<std::string> stopped;
  bool first = true;
  for (const WorkerFailure& failure : verdict.failures) {
    if (failure.stopped_by_us) {
      stopped.push_back(format("{}", failure.rank));
      continue;
    }
    out += format("  {} {}\n", first ? "first failure:" : "also failed:  ", failure.text());
    first = false;
  }
  if (!stopped.empty()) {
    const char* noun = stopped.size() == 1 ? "rank" : "ranks";
    out += "  " + wrap(format("stopped because of it: {} {}", noun, join(stopped, ", ")), 98, 4) + "\n";
  }
  if (first) return out;
  out += places.error_file.empty()
             ? "  error file: none was written (torch's @record on the script's main function writes one)\n"
             : format("  error file: {}\n", printable(places.error_file, kPathBytes));
  if (!places.directory.empty()) out += format("  log directory: {}\n", printable(places.directory, kPathBytes));
  return out;
}

}  // namespace elastic::agent
