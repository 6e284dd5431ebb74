#pragma once

#include <memory>
#include <string>

#include "health/report/health_report.h"
#include "rendezvous/coordinator/coordinator_events.h"
#include "src/net/side_thread.h"
#include "src/output/log_files.h"

namespace elastic::run {

// Reports what the check of a round has found, on the node that has the coordinator: on the screen in one line, with a
// table if anything is wrong; in the log also with DLRover's lines; and in health.json in the log directory if the user
// has named a log directory or a node is unhealthy.
class CheckReporter {
 public:
  // A reporter that does nothing.
  CheckReporter() = default;
  // Without `logs` there is no health.json. `files` is the thread for all access to files, and outlives the reporter.
  // `page` is a file for the report as HTML; empty: none.
  CheckReporter(net::SideThread& files, std::shared_ptr<output::RunDirectory> logs, std::string page);

  // The check of a round of this job is over. Returns what was reported.
  health::HealthReport judged(const std::string& job, const coordinator::CheckJudged& check);

 private:
  void write(const std::string& path, std::string text);

  net::SideThread* files_ = nullptr;
  std::shared_ptr<output::RunDirectory> logs_;
  std::string page_;
};

}  // namespace elastic::run
