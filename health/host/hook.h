#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "health/messages/messages.h"
#include "src/base/exit_status.h"

// What a user's own check (--health-hook CMD) says of the host.
namespace elastic::health {

// What is looked at of its output: the end.
inline constexpr std::size_t kHookOutputBytes = 64 * 1024;
// Findings that are taken over, the first ones.
inline constexpr std::size_t kHookFindings = 32;
// Of each text in them.
inline constexpr std::size_t kHookTextBytes = 400;

// How the hook ended.
struct HookEnd {
  ExitStatus status = {};
  std::optional<std::int64_t> timed_out_after_s = {};  // it was ended then, and `status` says nothing
  std::string why_not_started = {};                    // empty: it was started
};

// The last line of its output that is a JSON object, {"severity": "note", "warning" or "fatal", "what": "...", "where":
// "...", "remedy": "..."} or {"findings": [such objects]}, is taken over, and the exit status is then the hook's own
// affair. Without a finding an exit status but 0 is fatal. A hook that was killed, did not end in time or
// could not be started is, whatever it has written.
std::vector<Finding> hook_findings(std::string_view command, const HookEnd& end, std::string_view output);

}  // namespace elastic::health
