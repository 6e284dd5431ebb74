#include "health/hang_evidence/store_facts.h"

#include <algorithm>
#include <cstddef>

#include "health/hang/bounds.h"
#include "src/base/text.h"

namespace elastic::hang {
namespace {

constexpr std::size_t kRanksBytes = 400;  // of a list of ranks in a line

}  // namespace

StoreFacts store_facts_of(const evidence::StoreFacts& seen, std::int32_t world_size) {
  const auto runs_of = [&](const std::vector<int>& ranks) {
    return normalised(RankRuns::of({ranks.begin(), ranks.end()}), world_size);
  };
  StoreFacts facts{.absent = runs_of(seen.never_came), .waiting = runs_of(seen.came)};
  for (const evidence::AwaitedKey& awaited : seen.awaited) {
    if (facts.waits.size() >= bounds::kStoreWaits) break;
    facts.waits.push_back({.key = awaited.key,
                           .ranks = runs_of(awaited.ranks),
                           .clients = static_cast<std::int32_t>(std::min<std::size_t>(awaited.clients, INT32_MAX))});
  }
  return facts;
}

std::vector<std::string> store_lines(const evidence::StoreFacts& seen) {
  std::vector<std::string> lines;
  for (const evidence::AwaitedKey& awaited : seen.awaited) {
    std::string line = format("key {}: {} {} for it", awaited.key, counted(awaited.clients, "client"),
                              awaited.clients == 1 ? "waits" : "wait");
    if (!awaited.ranks.empty()) {
      const RankRuns ranks = RankRuns::of({awaited.ranks.begin(), awaited.ranks.end()});
      line += format(", of this node {} {}", plural("rank", ranks.size()), ranks.text(kRanksBytes));
    }
    lines.push_back(std::move(line));
  }
  if (seen.has_more_awaited) lines.push_back("more keys are waited for");
  return lines;
}

}  // namespace elastic::hang
