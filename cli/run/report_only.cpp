#include "cli/run/commands.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "src/base/log.h"
#include "src/base/read_file.h"
#include "src/base/result.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/output/write_all.h"
#include "src/report/failure_json.h"
#include "src/report/html.h"
#include "src/report/merge.h"
#include "src/report/summary.h"

namespace elastic::run {
namespace {

namespace fs = std::filesystem;

constexpr int kExitUsage = 2;

// Finds the failure.json of a run's directory, or those of the runs right below it.
Result<std::vector<std::string>> reports_in(const std::string& directory) {
  const std::string own = directory + "/failure.json";
  if (access(own.c_str(), F_OK) == 0) return std::vector{own};
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string path = entry.path().string() + "/failure.json";
    if (access(path.c_str(), F_OK) == 0) found.push_back(path);
  }
  if (error) {
    return fail(format("--report={}", printable(directory)), errno_text(error.value()), "name a run's log directory");
  }
  if (found.empty()) {
    return fail(format("--report={}", printable(directory)), "there is no failure.json in it or right below it",
                "name the log directory of a run that has failed");
  }
  std::ranges::sort(found);
  return found;
}

Result<report::JobReport> read_reports(const std::vector<std::string>& directories) {
  std::vector<report::JobReport> reports;
  for (const std::string& directory : directories) {
    const auto paths = reports_in(directory);
    if (!paths) return std::unexpected(paths.error());
    for (const std::string& path : *paths) {
      const auto text = read_file(path, report::kFailureJsonBytes + 1);
      if (!text) return fail_errno(printable(path), text.error());
      auto parsed = report::parse_failure_json(*text, path);
      if (!parsed) return std::unexpected(std::move(parsed.error()));
      reports.push_back(std::move(*parsed));
    }
  }
  return report::merge_reports(std::move(reports));
}

Status write_page(const std::string& path, const std::string& page) {
  int error = 0;
  if (path == "-") {
    error = output::write_all(STDOUT_FILENO, page);
  } else {
    const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    error = file ? output::write_all(file.get(), page) : errno;
  }
  if (error == 0) return {};
  return fail_errno(format("--html={}", printable(path)), error, "name a file that can be written");
}

int refuse(const Error& error) {
  log::critical(error.text());
  return kExitUsage;
}

}  // namespace

int print_report(const std::vector<std::string>& directories, const std::string& html_file) {
  const auto report = read_reports(directories);
  if (!report) return refuse(report.error());
  if (html_file.empty()) {
    const int error = output::write_all(STDOUT_FILENO, report::failure_summary(*report));
    return error == 0 ? 0 : refuse(Error{"stdout", errno_text(error), ""});
  }
  const Status written = write_page(html_file, report::html_page(*report));
  return written ? 0 : refuse(written.error());
}

}  // namespace elastic::run
