#include "src/report/merge.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "src/base/text.h"
#include "src/report/failure_json.h"
#include "src/report/likely_cause.h"

namespace elastic::report {
namespace {

using Key = std::tuple<int, int, std::int64_t>;
Key key_of(const FailedWorker& worker) { return {worker.node_rank, worker.rank, worker.pid}; }

void fill(std::string& into, const std::string& from) {
  if (into.empty()) into = from;
}

// Merges failures of the same worker.
void unite(std::vector<FailedWorker>& failures) {
  std::map<Key, std::size_t> known;
  std::vector<FailedWorker> out;
  for (FailedWorker& worker : failures) {
    const auto [at, added] = known.try_emplace(key_of(worker), out.size());
    if (added) {
      out.push_back(std::move(worker));
    } else {
      complete(out[at->second], worker);
    }
  }
  failures = std::move(out);
}

// Removes duplicates of a node's rounds and sorts them.
void unite(std::vector<RoundReport>& rounds) {
  std::map<std::tuple<std::uint32_t, int, std::string>, RoundReport> known;
  for (RoundReport& round : rounds) {
    const std::tuple key{round.round, round.node_rank, round.host};
    const auto at = known.find(key);
    if (at == known.end()) {
      known.emplace(key, std::move(round));
    } else {
      std::ranges::move(round.failures, std::back_inserter(at->second.failures));
      unite(at->second.failures);
    }
  }
  rounds.clear();
  for (auto& [key, round] : known) rounds.push_back(std::move(round));
}

std::uint32_t last_round(const JobReport& report) {
  std::uint32_t last = 0;
  for (const RoundReport& round : report.rounds) last = std::max(last, round.round);
  return last;
}

// The last failures of a node that was lost before the last round belong to an earlier round.
void move_failures_to_their_round(JobReport& report) {
  if (report.rounds.empty()) return;
  auto last = std::ranges::max_element(report.rounds, {}, &RoundReport::round);
  std::ranges::move(report.failures, std::back_inserter(last->failures));
  report.failures.clear();
}

void put_first_cause_first(std::vector<FailedWorker>& failures) {
  using Place = std::tuple<bool, bool, std::int64_t, int>;
  std::vector<std::pair<Place, std::size_t>> order;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    const auto cause = likely_cause(failures[i]);
    order.push_back({{failures[i].stopped_by_us, cause && cause->lost_peer, failures[i].wall_ms, failures[i].rank}, i});
  }
  std::ranges::sort(order);
  std::vector<FailedWorker> sorted;
  sorted.reserve(failures.size());
  for (const auto& [place, i] : order) sorted.push_back(std::move(failures[i]));
  failures = std::move(sorted);
}

// Ranks outcomes: a failure on one node is the job's failure.
int gravity(JobReport::Outcome outcome) {
  switch (outcome) {
    case JobReport::Outcome::kFailed: return 2;
    case JobReport::Outcome::kStopped: return 1;
    case JobReport::Outcome::kSucceeded: return 0;
  }
  return 0;
}

void add_text(std::string& into, const std::string& more) {
  if (into.empty()) {
    into = more;
  } else if (!more.empty() && !into.contains(more)) {
    into += ", " + more;
  }
}

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

bool are_one(const FailedWorker& one, const FailedWorker& other) { return key_of(one) == key_of(other); }

void complete(FailedWorker& worker, const FailedWorker& other) {
  fill(worker.host, other.host);
  fill(worker.error_file, other.error_file);
  fill(worker.error_file_problem, other.error_file_problem);
  fill(worker.oom_evidence, other.oom_evidence);
  fill(worker.kernel_log, other.kernel_log);
  fill(worker.core_file, other.core_file);
  if (!worker.error) worker.error = other.error;
  if (!worker.timer) worker.timer = other.timer;
  // Only the worker's own node knows when its error.json was written.
  if (other.error_came_first && worker.stopped_by_us) worker.stopped_by_us = false;
  worker.error_came_first = worker.error_came_first || other.error_came_first;
  worker.wall_ms = std::min(worker.wall_ms, other.wall_ms);
  if (worker.tail.bytes.empty() && !other.tail.bytes.empty()) worker.tail = other.tail;
}

Result<JobReport> merge_reports(std::vector<JobReport> reports) {
  if (reports.empty()) return fail("cannot report", "there is no report to read");
  for (const JobReport& report : reports) {
    if (report.run_id == reports.front().run_id) continue;
    return fail("cannot report",
                format("the reports are from different jobs, with the run ids {} and {}",
                       printable(reports.front().run_id), printable(report.run_id)),
                "name the directories of one job");
  }
  if (reports.size() == 1) return std::move(reports.front());
  std::ranges::stable_sort(reports, {}, &JobReport::node_rank);
  std::uint32_t last = 0;
  for (const JobReport& report : reports) last = std::max(last, last_round(report));
  JobReport out;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    JobReport& report = reports[i];
    if (last_round(report) < last) move_failures_to_their_round(report);
    if (i == 0) {
      out = std::move(report);
      continue;
    }
    if (gravity(report.outcome) > gravity(out.outcome)) out.outcome = report.outcome;
    fill(out.reason, report.reason);
    if (report.hang && (!out.hang || report.hang->round > out.hang->round)) out.hang = std::move(report.hang);
    add_text(out.log_directory, report.log_directory);
    add_text(out.left_behind, report.left_behind);
    out.restarts_used = std::max(out.restarts_used, report.restarts_used);
    std::ranges::move(report.failures, std::back_inserter(out.failures));
    std::ranges::move(report.rounds, std::back_inserter(out.rounds));
  }
  unite(out.failures);
  unite(out.rounds);
  put_first_cause_first(out.failures);
  return out;
}

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
