#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "health/evidence/ras_report.h"

namespace elastic::evidence {

// The launches of all five collectives together.
std::int64_t launches_of(const RasCounts& counts);

// A worker as RAS names it, and its global rank. A host with several addresses has one for each.
struct RasWorker {
  RasProcess process{};
  int global_rank = 0;
};

// A rank that had launched less than others in both reports, and nothing between them.
struct RasLaggard {
  int rank = 0;                      // in the communicator
  std::optional<int> global_rank{};  // nothing if the process is none of the workers given
  RasProcess process{};
  std::int64_t behind = 0;  // launches that others have made, and it has not: in the second report
};

struct RasCommunicatorState {
  std::string hash{};
  std::int64_t size = 0;
  bool moved = false;      // a rank has launched something between the reports, or came to a communicator that is new
  bool had_before = true;  // it was in the first report, too
  std::int64_t launched = 0;  // the most that a rank has launched, of all five collectives together
  std::vector<RasLaggard> laggards{};
  std::vector<RasMissingRank> missing{};
  std::int64_t missing_ranks = 0;
  std::vector<int> failed{};  // ranks with an error of NCCL
  bool has_error = false;     // of the text form
  // Of the text form: what its ranks have launched, where they differ and both reports say the same. It may name the
  // ranks that are ahead instead of the laggards.
  std::vector<RasLaunched> differs{};
};

// What two reports of the same job say, the second one taken at least 2 s after the first: one alone is a snapshot in
// which ranks differ that are only on their way.
struct RasComparison {
  std::string nccl_version{};
  bool has_counts = false;  // without them nothing is known of what moves and who lags
  bool moved = false;       // any communicator has
  std::vector<RasCommunicatorState> communicators{};
  std::size_t foreign = 0;  // communicators of the second report that have no worker of ours: another job's
  std::vector<RasProcess> silent{};
  std::vector<RasProcess> dead{};
  bool is_partial = false;  // the second report was cut off, RAS ran into timeouts, or something was left out
};

// Compares two reports. `ours` are the workers of one node at least: a communicator without any of them is another
// job's and is ignored, since a connection to NCCL_RAS_ADDR meets any process of the same user. Without any workers
// nothing is ignored. Of the text form, which does not tell who its communicators belong to, nothing is ignored either.
RasComparison compare_ras(const RasReport& first, const RasReport& second, std::span<const RasWorker> ours);

// The comparison for people, in `most_lines` lines at most, what is wrong first. Global ranks where they are known,
// else those of the communicator.
std::vector<std::string> ras_summary(const RasComparison& comparison, std::size_t most_lines = 8);

}  // namespace elastic::evidence
