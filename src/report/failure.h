#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/exit_status.h"
#include "src/base/fields.h"
#include "src/base/limits.h"
#include "src/base/outcome.h"
#include "src/base/worker_start.h"
#include "src/report/error_file.h"
#include "src/report/hang.h"

// What is known about a job that has ended, as plain values. The launcher fills them in, or they are read again
// from failure.json; summary.h and html.h print them. Texts are as the system and the workers wrote
// them, with any bytes.
namespace elastic::report {

// A file timer of torchelastic that was not released in time, and for which elastic-run has signalled a worker or a
// process that it has started (docs/hangs.md).
struct ExpiredTimer {
  std::string scope = {};    // the timer's name
  std::int64_t late_ms = 0;  // how long it had expired when the signal was sent
  int signal = 0;            // 0: none was wanted, nor sent
  std::int64_t pid = 0;      // of the process that had set it
  HangStack stack = {};      // where Python stood then, by its main thread, the newest call first
  std::string problem = {};  // why that is not known, as a clause
  bool operator==(const ExpiredTimer&) const = default;

  static void fields(auto& io, auto& v) {
    each(io, "scope", v.scope, "late_ms", v.late_ms);
    io("signal", v.signal, at_most(127));
    io("pid", v.pid);
    io("stack", v.stack, at_most(kHangFrames));
    io("problem", v.problem);
  }
};

// "its timer 'load'" of the worker with that pid; of a process that it has started "the timer 'load' of its process
// 4712".
std::string timer_name(const ExpiredTimer& timer, std::int64_t worker);

// "load_batch train.py:12"; empty: it is not known.
std::string timer_place(const ExpiredTimer& timer);

// Whether a worker with that pid may have ended because of the timer's signal, so many ms after it was sent: by that
// signal, or, as it may have been caught or sent to a process of it, in some other way within 30 s.
bool may_have_ended(const ExpiredTimer& timer, std::int64_t worker, const ExitStatus& exit, std::int64_t after_ms);

// Leaves out the oldest calls, so that the stack has at most so many bytes.
void shorten_stack(ExpiredTimer& timer, std::size_t most_bytes);

// The most bytes of a worker's stderr that a report has.
inline constexpr std::size_t kTailBytes = limits::kStderrTailBytes;

// The last bytes that a worker wrote to stderr.
struct StderrTail {
  std::string bytes = {};  // at most kTailBytes
  // The file that they were read from; empty if they come from the stream itself.
  std::string source = {};
  // Why nothing could be kept; empty if the worker's stderr was seen.
  std::string none_because = {};
  // Lines that it wrote before `bytes`; not set if they were not counted.
  std::optional<std::uint64_t> lines_before = 0;
};

// A worker that ended other than by exit code 0, or that was stopped by elastic-run.
struct FailedWorker {
  std::string host = {};  // its fully qualified name, as Python's socket.getfqdn() has it
  int node_rank = 0;
  int rank = 0;
  int local_rank = 0;
  std::int64_t pid = 0;
  ExitStatus exit = {};
  std::int64_t wall_ms = 0;    // when it was seen to have ended: Unix time in ms by the node's clock
  bool stopped_by_us = false;  // it ended after its process group had been told to stop
  WorkerStart start = WorkerStart::kFresh;

  std::string error_file = {};          // path of its error.json; empty if there is none
  std::optional<ErrorFile> error = {};  // the contents of that file
  std::string error_file_problem = {};  // why it could not be read; empty if it could
  // When the file was last written, by its file system's clock, as Unix time; 0: not known. Not in failure.json.
  std::int64_t error_written_ns = 0;
  bool error_came_first = false;  // it was told to stop, but had written its error.json before (root_cause.h)

  // The evidence that the kernel killed it, or a process of it, for lack of memory; empty if there is none.
  std::string oom_evidence = {};
  std::string kernel_log = {};             // lines about GPUs and memory in the kernel log while it ran
  std::string core_file = {};              // where its core dump is, or which program takes them; empty: not known
  std::optional<ExpiredTimer> timer = {};  // for which it, or a process of it, was signalled; not set: there was none
  StderrTail tail = {};

  // "rank 5 (node 1, local rank 1, pid 4711)"; node 0 is left out.
  std::string name() const;
};

// One round as one node saw it.
struct RoundReport {
  std::uint32_t round = 0;
  int restart_count = 0;
  int node_rank = 0;
  std::string host = {};
  std::int64_t began_ms = 0;  // Unix time in milliseconds
  std::int64_t ended_ms = 0;
  int first_rank = 0;  // the node's ranks: first_rank .. first_rank + rank_count - 1
  int rank_count = 0;
  WorkerStart start = WorkerStart::kFresh;  // of the node's workers
  std::string reason = {};                  // why this round began, as a clause; empty for the first one
  // The failures of a round before the last one; the last round's are JobReport::failures.
  std::vector<FailedWorker> failures = {};
};

// How a job ended, as one node knows it, or as several nodes' reports together say (merge.h).
struct JobReport {
  using Outcome = elastic::Outcome;

  std::string version = {};  // that of the elastic-run that wrote the report: "0.1.0"
  std::string run_id = {};
  std::string title = {};       // what torchrun's block calls the job: the script as typed
  std::string program = {};     // the executable and its arguments, as a shell reads them
  std::string executable = {};  // the file that was executed, as it was found
  Outcome outcome = Outcome::kFailed;
  std::string reason = {};  // a sentence; empty if the workers' failures say everything
  int restarts_used = 0;
  int max_restarts = 0;
  std::string log_directory = {};  // the run's; empty if nothing was kept
  std::string left_behind = {};    // processes that did not end even when killed
  std::string host = {};           // that of the node that writes the report
  int node_rank = 0;
  // The worker that failed first was on another node, which prints the whole report. Not in failure.json.
  bool first_failed_elsewhere = false;
  int utc_offset_s = 0;  // the node's local time, in which times are shown; east positive
  std::vector<RoundReport> rounds = {};
  // The failures of the last round: the first cause first, then in order of time.
  std::vector<FailedWorker> failures = {};
  // The last hang that was told of; not set: none was.
  std::optional<Hang> hang = {};

  // The first worker that failed by itself; null if none did. Points into this value.
  const FailedWorker* first_failure() const;
};

}  // namespace elastic::report
