#pragma once

#include <cstddef>
#include <cstdint>

// Bounds of names, connections and HTTP. docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | addresses of one name | {kAddressesOfName} | those that RFC 6724 puts first are tried |
inline constexpr std::size_t kAddressesOfName = 64;

// | an HTTP request: its head, its target | {kHttpHeadBytes}, {kHttpTargetBytes} | answered 431, 414, and closed |
inline constexpr std::size_t kHttpHeadBytes = 8 * 1024;
inline constexpr std::size_t kHttpTargetBytes = 2 * 1024;
// | connections of HTTP at once, in one process | {kHttpConnections} | one more is answered 503 and closed; beyond the
// same number of these it is closed without an answer |
inline constexpr std::size_t kHttpConnections = 256;
// | HTTP requests that are answered in a millisecond | {kHttpRequestsPerTurn} | the others wait for the next one, in
// their order |
inline constexpr std::size_t kHttpRequestsPerTurn = 64;
// | what an HTTP client sends ahead of its answers; answers that it leaves unread | {kHttpAheadBytes};
// {kHttpUnreadBytes} | it is closed |
inline constexpr std::size_t kHttpAheadBytes = 128 * 1024;
inline constexpr std::size_t kHttpUnreadBytes = 16 * 1024 * 1024;
// | from one request of a connection to the next, or until a request is complete | {kHttpIdleMs}, and {kHttpTakesMs} at
// most while its client makes progress in taking answers | it is closed |
inline constexpr std::int64_t kHttpIdleMs = 10'000;
inline constexpr std::int64_t kHttpTakesMs = 60'000;
// | HTTP answers that come later (stacks): how many are awaited at once, and for how long | {kHttpLater};
// {kHttpLaterMs} | a further one is answered 503; a connection whose answer takes longer is closed |
inline constexpr std::size_t kHttpLater = 32;
inline constexpr std::int64_t kHttpLaterMs = 40'000;
// | an answer that `--status` and `--stacks` read | {kHttpAnswerBytes} | refused, exit status 1 |
inline constexpr std::size_t kHttpAnswerBytes = 64 * 1024 * 1024;

}  // namespace elastic::limits
