#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/report/failure.h"

// failure.json: a JobReport as docs/failure-report.md describes it, member by member.
namespace elastic::report {

inline constexpr int kFailureJsonVersion = 1;
// The longest failure.json that is read.
inline constexpr std::size_t kFailureJsonBytes = 256 * 1024 * 1024;

// How much of many workers is written. The first failures are written in full; for the others, and those of earlier
// rounds, the last bytes of stderr, traceback and kernel log are enough.
inline constexpr std::size_t kJsonWholeFailures = 16;
inline constexpr std::size_t kJsonShortBytes = 4096;      // for a worker that failed by itself
inline constexpr std::size_t kJsonStoppedBytes = 1024;    // for a worker that was only stopped
inline constexpr std::size_t kJsonRounds = 100;           // the last ones
inline constexpr std::size_t kJsonFailuresOfARound = 16;  // of each round before the last one

// Makes the text of failure.json, with a line end at its end. It is valid UTF-8 whatever the report contains.
std::string failure_json(const JobReport& report);

// Reads a failure.json. `what` names the text in the error: "/logs/x/failure.json". A member that is
// missing or of the wrong type counts as empty. Fails on a text that is not JSON, not a failure.json, of
// another version, or has something other than objects where failures and rounds should be.
Result<JobReport> parse_failure_json(std::string_view text, std::string what);

// Encodes by RFC 4648, with padding and without line ends.
std::string base64(std::string_view bytes);
// Returns the bytes; none if the text is not base64.
std::optional<std::string> base64_decoded(std::string_view text);

}  // namespace elastic::report
