#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/net/side_thread.h"
#include "src/report/hang.h"

namespace elastic::run {

// Tells of the hangs of a job on one node: on the screen, as the event `hang`, and in the files hang.json and
// hang.html. Each node of the job has one, and tells what its coordinator has found. It keeps the last hang, for the
// report of the job (JobReporter::hang_is()).
class HangReporter {
 public:
  // `files` is the thread for all access to files, and outlives the reporter. `run_id` is the job's.
  HangReporter(net::SideThread& files, std::string run_id);

  // A round begins, whose evidence and files belong into this directory, which is made when it is needed:
  // "<run directory>/attempt_0/hang". Empty: there are no logs. A hang of another round is over.
  void round_began(std::int64_t round, std::string directory);

  // No progress of the job is seen, so that no limit holds: `text` says so.
  void not_armed(std::int64_t round, std::string_view text) const;
  // There has been no progress for longer than the limit, and evidence is collected: the verdict may follow.
  void suspected(std::int64_t round, std::int64_t silent_ms, std::int64_t limit_ms) const;

  // Workers are stopped, which `cause` says as a clause, and are sent SIGCONT before there is a verdict.
  void continued(std::int64_t round, std::int64_t silent_ms, std::string_view cause);

  // The verdict. `screen` is what hang::hang_screen() made of it, without the line of the evidence, which is added
  // here: each node has its own directory. Of `hang` the members that the keeping node adds are filled in here, too.
  void report_verdict(std::int64_t round, std::string_view screen, report::Hang hang);

  // Progress has come after the verdict, `silent_ms` after the last one before it.
  void recovered(std::int64_t round, std::int64_t silent_ms);
  // Progress has come before the verdict. The user is warned of it if they were warned of SIGCONT.
  void withdrawn(std::int64_t round, std::int64_t silent_ms);

  // The last hang that was told, with what became of it; not set: none was.
  const std::optional<report::Hang>& last() const { return last_; }

 private:
  void write() const;

  net::SideThread& files_;
  std::string run_id_;
  std::int64_t round_ = 0;
  std::string directory_;       // of that round
  std::string last_directory_;  // of the last hang
  std::optional<std::int64_t>
      continued_round_;  // in which workers were sent SIGCONT, until it is said whether it helped
  std::optional<report::Hang> last_;
};

}  // namespace elastic::run
