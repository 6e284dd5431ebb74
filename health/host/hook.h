#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "health/messages/messages.h"
#include "src/base/exit_status.h"

// The findings of a user's own check of the host (--health-hook CMD).
namespace elastic::health {

// | the stdout of a health hook | the last {kHookOutputBytes}; a line of JSON there has 4 levels and 64 members of an
// object | the rest is ignored; such a line is no finding |
inline constexpr std::size_t kHookOutputBytes = 64 * 1024;
// | findings of a health hook; each text in one | {kHookFindings}; {kHookTextBytes} | the first ones are kept; the text
// is cut |
inline constexpr std::size_t kHookFindings = 32;
inline constexpr std::size_t kHookTextBytes = 400;

// How the hook ended.
struct HookEnd {
  ExitStatus status = {};
  std::optional<std::int64_t> timed_out_after_s =
      {};                            // it was killed after so many seconds; `status` has no meaning then
  std::string why_not_started = {};  // empty: it was started
};

// Reads the findings from the last line of the output that is a JSON object with findings: {"severity": "note",
// "warning" or "fatal", "what": "...", "where": "...", "remedy": "..."}, or {"findings": [such objects]}. Where there
// is such a line the exit status does not count; without one, an exit status other than 0 is a fatal finding. So is,
// whatever the output, a hook that was killed, did not end in time or could not be started.
std::vector<Finding> hook_findings(std::string_view command, const HookEnd& end, std::string_view output);

}  // namespace elastic::health
