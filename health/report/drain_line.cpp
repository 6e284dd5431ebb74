#include "health/report/drain_line.h"

#include <algorithm>

#include "src/base/text.h"

namespace elastic::health {
namespace {

std::string fit_for_a_reason(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_blank = std::string_view(" \t\n\r\"'`").find(c) != std::string_view::npos;
    const bool is_plain = c > ' ' && c <= '~' && c != '\\' && c != '$';
    const char shown = is_blank ? ' ' : is_plain ? c : '?';
    if (shown == ' ' && (out.empty() || out.back() == ' ')) continue;
    out += shown;
  }
  while (out.ends_with(' ')) out.pop_back();
  if (out.size() <= kDrainLineBytes) return out;
  out.resize(kDrainLineBytes - 3);
  return out + "...";
}

std::string text_of_finding(const Finding& finding) {
  const bool says_where = finding.where.empty() || finding.what.find(finding.where) != std::string::npos;
  return says_where ? finding.what : format("{} ({})", finding.what, finding.where);
}

}  // namespace

std::string drain_line(std::string_view program, const NodeOutcome& outcome) {
  std::vector<std::string> wrong;
  std::vector<std::string> warnings;
  for (const Finding& finding : outcome.findings) {
    if (finding.severity == Severity::kFatal) wrong.push_back(text_of_finding(finding));
    if (finding.severity == Severity::kWarning) warnings.push_back(text_of_finding(finding));
  }
  // The verdict mostly repeats the finding for which the node was judged.
  const bool is_new = std::ranges::none_of(
      wrong, [&](const std::string& text) { return outcome.flaw.find(text) != std::string::npos; });
  const auto named = std::ranges::find_if(
      outcome.findings, [&](const Finding& finding) { return outcome.flaw.find(finding.what) != std::string::npos; });
  if (!outcome.flaw.empty() && is_new && (wrong.empty() || named == outcome.findings.end())) {
    wrong.insert(wrong.begin(), outcome.flaw);
  }
  std::vector<std::string> parts;
  if (!wrong.empty()) {
    parts = std::move(wrong);
  } else if (!outcome.was_checked) {
    parts.push_back(format("not checked: {}", outcome.why_not));
  } else {
    parts.emplace_back("healthy");
    if (outcome.others_are_unhealthy) parts.emplace_back("another node or a link is not fit");
  }
  parts.insert(parts.end(), warnings.begin(), warnings.end());
  return fit_for_a_reason(format("{}: {}", program, join(parts, "; ")));
}

std::string flaw_of_node(std::string_view reason, int node_rank) {
  for (const char* const before : {": ", "; "}) {
    const std::string name = format("{}node {}", before, node_rank);
    for (std::size_t at = reason.find(name); at != std::string_view::npos; at = reason.find(name, at + 1)) {
      std::string_view rest = reason.substr(at + name.size());
      if (rest.starts_with(" (")) {
        const std::size_t end = rest.find("): ");
        if (end == std::string_view::npos) continue;
        rest.remove_prefix(end + 1);
      }
      if (!rest.starts_with(": ")) continue;
      rest.remove_prefix(2);
      return std::string(rest.substr(0, std::min(rest.find("; node "), rest.find("; and "))));
    }
  }
  return {};
}

}  // namespace elastic::health
