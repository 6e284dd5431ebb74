#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// What goes between the launcher, the import server and the workers that wait for a rank, one packet each: a letter and
// fields with NULs between (docs/warm-workers.md). Both sides are of one binary.
namespace elastic::warm {

// A packet that is no shorter than this is not sent.
inline constexpr std::size_t kPacketBytes = 128 * 1024;

// --- The server's. ----------------------------------------------------------------------------------

// It has imported all that it will, and forks workers now.
struct Ready {
  int modules = 0;
  std::int64_t cpu_ms = 0;               // that this has taken, with the rehearsal
  std::int64_t spared_cpu_ms = 0;        // that a worker of its own would have taken for the imports
  std::int64_t memory_kib = 0;           // of its own, not counting files
  std::string struck = {};               // packages that it does without, with commas between
  std::vector<std::string> places = {};  // directories with modules; if one changes, its modules may be others
};
// Its workers would not be what fresh interpreters are. It ends.
struct Refused {
  std::string why;
};
// It has begun again without a package.
struct Struck {
  std::string package;
  std::string why;
};
// A worker waits; the launcher's end of a socket to it comes along.
struct Parked {
  int pid = 0;
};
// Of the first order that it had not done, all wait that will: others have died on their way.
struct Forked {};
using Report = std::variant<Ready, Refused, Struck, Parked, Forked>;

// Nothing if it is none.
std::optional<Report> read_report(std::string_view packet);

// --- The launcher's. --------------------------------------------------------------------------------

// To the server: fork so many workers.
std::string park_packet(int count);
// To a worker that waits, with its stdout and stderr, and cgroup.procs of its cgroup if there is one: become this
// worker. It answers kTaken when nothing is left but to run the script, and runs that when it gets kGo. If its socket
// is closed it ends.
std::string order_packet(std::span<const std::string> variables, std::span<const std::string> arguments);
inline constexpr char kTaken = 'T';
inline constexpr char kGo = 'G';

}  // namespace elastic::warm
