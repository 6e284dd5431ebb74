#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/exit_status.h"
#include "src/base/limits.h"
#include "src/base/outcome.h"
#include "src/report/error_file.h"

// What is known about a job that has ended, as plain values: filled in by who ran it, or read again
// from failure.json; printed by summary.h and html.h. Texts are as the system and the workers gave
// them: any bytes.
namespace elastic::report {

// What a worker's stderr is kept to, in bytes; a caller may hand in less, never more.
inline constexpr std::size_t kTailBytes = limits::kStderrTailBytes;

// The last bytes that a worker wrote to stderr.
struct StderrTail {
  std::string bytes = {};  // at most kTailBytes
  // The file that they were read from; empty if they come from the stream itself.
  std::string source = {};
  // Why nothing could be kept; empty if the worker's stderr was seen.
  std::string none_because = {};
  // Lines that it wrote before `bytes` and that are not in there; nothing if nobody counted.
  std::optional<std::uint64_t> lines_before = 0;
};

// One worker that ended otherwise than by exit code 0, or that was ended by us.
struct FailedWorker {
  std::string host = {};  // its fully qualified name, as Python's socket.getfqdn() has it
  int node_rank = 0;
  int rank = 0;
  int local_rank = 0;
  std::int64_t pid = 0;
  ExitStatus exit = {};
  std::int64_t wall_ms = 0;    // when its end was seen: Unix time in ms by the node's clock
  bool stopped_by_us = false;  // it ended after its group had been told to

  std::string error_file = {};          // path of its error.json; empty if there is none
  std::optional<ErrorFile> error = {};  // what stood in there
  std::string error_file_problem = {};  // why it could not be understood; empty if it could
  // When the file was last written, by its file system's clock, as Unix time; 0: not known. Not in failure.json.
  std::int64_t error_written_ns = 0;
  bool error_came_first = false;  // it was told to stop, but had written its error before (first_error.h)

  // What says that the kernel killed it, or a process of it, for memory; empty if nothing does.
  std::string oom_evidence = {};
  std::string kernel_log = {};  // lines of the kernel log about GPUs and memory, while it ran
  std::string core_file = {};   // where its core is, or what takes cores here; empty: not known
  StderrTail tail = {};

  // "rank 5 (node 1, local rank 1, pid 4711)"; node 0 goes without saying.
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
  std::string reason = {};  // why there was another round after the first one, as a clause
  // Of a round before the last one; the last round's are JobReport::failures.
  std::vector<FailedWorker> failures = {};
};

// How a job ended, as one node knows it, or as several nodes' reports together say (merge.h).
struct JobReport {
  using Outcome = elastic::Outcome;

  std::string version = {};  // of the elastic-run that wrote it: "0.1.0"
  std::string run_id = {};
  std::string title = {};       // what torchrun's block calls the job: the script as typed
  std::string program = {};     // the executable and its arguments, as a shell reads them
  std::string executable = {};  // the file that was executed, as it was found
  Outcome outcome = Outcome::kFailed;
  std::string reason = {};  // a sentence; empty if the workers' failures say it all
  int restarts_used = 0;
  int max_restarts = 0;
  std::string log_directory = {};  // of the run; empty if nothing was kept
  std::string left_behind = {};    // processes that did not end even when killed
  std::string host = {};           // of the node that writes
  int node_rank = 0;
  // The worker that failed first was on another node, which tells the whole. Not in failure.json.
  bool first_failed_elsewhere = false;
  int utc_offset_s = 0;  // of the node's local time, east positive: times are shown in it
  std::vector<RoundReport> rounds = {};
  // Of the last round: first cause first, then in order of time.
  std::vector<FailedWorker> failures = {};

  // The first that failed by itself; null if none did. Owned by this value.
  const FailedWorker* first_failure() const;
};

}  // namespace elastic::report
