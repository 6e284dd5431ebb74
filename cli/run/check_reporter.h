#pragma once

#include <memory>
#include <string>

#include "health/report/health_report.h"
#include "rendezvous/coordinator/coordinator.h"
#include "src/net/side_thread.h"
#include "src/output/log_files.h"

namespace elastic::run {

// Tells what the check of a round has found, on the node that has the coordinator: on the screen in one line, with a
// table if anything is not as it should be, in the log with the lines of DLRover, and in the file health.json in the
// log directory, where the user has named one or a node is not fit.
class CheckReporter {
 public:
  // Without `logs` there is no file. `files` is the thread for all that touches them.
  CheckReporter() = default;
  // `page` is a file for the same as HTML; empty: none.
  CheckReporter(net::SideThread& files, std::shared_ptr<output::RunDirectory> logs, std::string page);

  // Returns what it has told.
  health::HealthReport judged(const std::string& job, const coordinator::CheckJudged& check);

 private:
  void write(const std::string& path, std::string text);

  net::SideThread* files_ = nullptr;
  std::shared_ptr<output::RunDirectory> logs_;
  std::string page_;
};

}  // namespace elastic::run
