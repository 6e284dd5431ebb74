#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace elastic::evidence {

// | a report of NCCL's RAS | {kRasBytes}, of JSON {kRasJsonLevels} levels and {kRasJsonMembers} members of an object |
// it is refused, with the reason |
inline constexpr std::size_t kRasBytes = 64 * 1024 * 1024;
// | communicators of a RAS report; ranks of all of them; a host, a hash, a version | {kRasCommunicators} (as text
// 4,096); {kRasRanks}; {kRasTextBytes} | the rest is left out and counted; a text is cut |
inline constexpr std::size_t kRasCommunicators = 65'536;
inline constexpr std::size_t kRasRanks = 262'144;
inline constexpr std::size_t kRasTextBytes = 128;
inline constexpr std::size_t kRasJsonLevels = 8;
inline constexpr std::size_t kRasJsonMembers = 64;

// The collectives that RAS counts, each by its launches on the host.
inline constexpr std::array<std::string_view, 5> kRasCollectives = {"Broadcast", "Reduce", "AllGather", "ReduceScatter",
                                                                    "AllReduce"};
using RasCounts = std::array<std::int64_t, kRasCollectives.size()>;

// A process of the job. RAS names a host by the numeric address at which NCCL's processes meet.
struct RasProcess {
  std::string host{};
  std::int64_t pid = 0;  // in the process's own pid namespace; -1: unknown
  auto operator<=>(const RasProcess&) const = default;
};

// A rank of a communicator; it is no global rank.
struct RasRank {
  int rank = 0;
  RasProcess process{};
  RasCounts launched{};
  std::int64_t init_state = 0;   // ncclResult_t; 0: it runs, 7: still at it
  std::int64_t async_error = 0;  // ncclResult_t; 0: none
  bool is_ending = false;        // it is being finalized, destroyed or aborted
};

// A rank of which RAS got no data.
struct RasMissingRank {
  int rank = 0;
  RasProcess process{};
  bool is_silent =
      false;             // its process did not answer; else it answered, and does not know the communicator (any more)
  bool is_dead = false;  // its process could not be reached for 60 s
};

// Ranks of a communicator that have launched so many operations, as the text form tells it. It names few of them.
struct RasLaunched {
  std::string collective{};  // "AllReduce"; empty in NCCL 2.24 and 2.25, which count all together
  std::int64_t operations = 0;
  std::int64_t ranks = 0;
  std::vector<int> named{};
  bool operator==(const RasLaunched&) const = default;
};

struct RasCommunicator {
  std::string hash{};  // "0x1f...", with the second one where there is one: "0x1f:0x2:0x3"
  std::int64_t size = 0;
  std::vector<RasRank> ranks{};           // those that answered; none in the text form
  std::vector<RasMissingRank> missing{};  // the text form names few of them
  // Of the text form only.
  std::int64_t missing_ranks = 0;
  bool has_error = false;
  std::vector<RasLaunched> launched{};  // where ranks differ
};

struct RasReport {
  std::string nccl_version{};  // "2.30.7"
  // JSON, which NCCL has from 2.28.7 on. The text form does not tell what each rank has launched, and of a communicator
  // whose ranks agree it tells nothing.
  bool has_counts = false;
  std::vector<RasCommunicator> communicators{};
  std::vector<RasProcess> silent{};  // of the text form: processes without an answer, and those taken for dead
  std::vector<RasProcess> dead{};
  std::int64_t timeouts = 0;  // of RAS itself, while it collected the report
  bool is_cut = false;        // of the text form: the report ended before its end
  std::size_t left_out = 0;   // communicators and ranks that are not whole, or beyond the bounds
};

// Reads a report, whichever form it has. Fails on what is none, with the reason. NCCL 2.28.9 leaves out a comma before
// the status of a missing rank; it is read all the same.
Result<RasReport> read_ras_report(std::string_view text);

// Reads what VERBOSE STATUS answers without JSON (NCCL 2.24 and later): which processes and ranks are missing, and of
// communicators whose ranks differ what some of their ranks have launched. Fails if the text is no such report.
Result<RasReport> read_ras_text(std::string_view text);

}  // namespace elastic::evidence
