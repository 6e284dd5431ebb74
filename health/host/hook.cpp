#include "health/host/hook.h"

#include <algorithm>
#include <utility>

#include "src/base/json.h"
#include "src/base/json_archive.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

constexpr std::size_t kMostLevels = 4;
constexpr std::size_t kMostMembers = 64;
constexpr std::size_t kCommandBytes = 100;

// A finding whose severity is unknown is kept, as a warning.
Finding finding_in(const Json& json, const std::string& command) {
  Finding finding;
  const bool is_whole = read_json(json, finding, JsonForm::kForgiving, kHookTextBytes).empty();
  finding.name.clear();  // no rule of ours has found it
  if (finding.what.empty()) finding.what = format("the health hook {} does not say what it has found", command);
  if (finding.where.empty()) finding.where = command;
  if (!is_whole) {
    finding.severity = Severity::kWarning;
    finding.what +=
        format(" (its severity \"{}\" is not note, warning or fatal)", printable(json.text_or_empty("severity"), 32));
  }
  return finding;
}

// Nothing if the line is not a JSON object with findings. The list of findings may be empty.
std::optional<std::vector<Finding>> findings_in(std::string_view line, const std::string& command) {
  if (!line.starts_with('{') || !json_over_bounds(line, kMostLevels, kMostMembers).empty()) return {};
  const auto json = Json::parse(line, "the health hook's output");
  if (!json || json->as_object() == nullptr) return {};
  std::vector<Finding> findings;
  const Json* list = json->find("findings");
  if (list != nullptr && list->as_array() != nullptr) {
    for (const Json& element : *list->as_array()) {
      if (element.as_object() == nullptr || findings.size() == kHookFindings) continue;
      findings.push_back(finding_in(element, command));
    }
    return findings;
  }
  if (json->find("severity") == nullptr) return {};  // another program's JSON, such as a log line
  findings.push_back(finding_in(*json, command));
  return findings;
}

struct Said {
  std::vector<Finding> findings;
  std::string_view last_line;  // the last one that is not empty
};

Said read_output(std::string_view output, const std::string& command) {
  Said said;
  if (output.size() > kHookOutputBytes) output.remove_prefix(output.size() - kHookOutputBytes);
  while (!output.empty()) {
    const std::size_t end = output.rfind('\n');
    const std::string_view line = trim(end == std::string_view::npos ? output : output.substr(end + 1));
    output = output.substr(0, end == std::string_view::npos ? 0 : end);
    if (said.last_line.empty()) said.last_line = line;
    if (auto found = findings_in(line, command)) {
      said.findings = std::move(*found);
      break;
    }
  }
  return said;
}

}  // namespace

std::vector<Finding> hook_findings(std::string_view command, const HookEnd& end, std::string_view output) {
  const std::string name = printable(command, kCommandBytes);
  Said said = read_output(output, name);
  std::string how;
  if (!end.why_not_started.empty()) {
    how = "was not started: " + printable(end.why_not_started, kHookTextBytes);
  } else if (end.timed_out_after_s) {
    how = format("did not end in {} s", *end.timed_out_after_s);
  } else if (end.status.signal != 0) {
    how = end.status.text();
  } else if (end.status.code != 0 && said.findings.empty()) {
    how = format("ended with {}", end.status.code);
  } else {
    return std::move(said.findings);
  }
  const std::string last_words =
      said.last_line.empty() || !said.findings.empty() ? "" : ": " + printable(said.last_line, kHookTextBytes);
  said.findings.push_back({Severity::kFatal, format("the health hook {} {}{}", name, how, last_words), name,
                           "run it by hand on this host"});
  return std::move(said.findings);
}

}  // namespace elastic::health
