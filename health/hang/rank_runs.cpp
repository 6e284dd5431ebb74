#include "health/hang/rank_runs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/base/text.h"

namespace elastic::hang {
namespace {

// Sorts the runs, and joins those that touch.
std::vector<RankRuns::Run> joined(std::vector<RankRuns::Run> runs) {
  std::ranges::sort(runs, {}, &RankRuns::Run::first);
  std::vector<RankRuns::Run> out;
  for (const RankRuns::Run& run : runs) {
    if (!out.empty() && run.first <= out.back().last + 1) {
      out.back().last = std::max(out.back().last, run.last);
    } else {
      out.push_back(run);
    }
  }
  return out;
}

}  // namespace

RankRuns RankRuns::of(std::vector<std::int32_t> ranks) {
  std::vector<Run> runs;
  runs.reserve(ranks.size());
  for (const std::int32_t rank : ranks) runs.push_back({rank, rank});
  return {.runs = joined(std::move(runs))};
}

RankRuns RankRuns::all(std::int32_t world_size) {
  if (world_size <= 0) return {};
  return {.runs = {{0, world_size - 1}}};
}

void RankRuns::add(std::int32_t rank) {
  if (runs.empty() || rank > runs.back().last + 1) return runs.push_back({rank, rank});
  if (rank == runs.back().last + 1) {
    runs.back().last = rank;
  } else if (!contains(rank)) {
    runs.push_back({rank, rank});
    runs = joined(std::move(runs));
  }
}

bool RankRuns::contains(std::int32_t rank) const {
  const auto after = std::ranges::upper_bound(runs, rank, {}, &Run::first);
  return after != runs.begin() && rank <= std::prev(after)->last;
}

bool RankRuns::includes(const RankRuns& others) const {
  return std::ranges::all_of(others.runs, [&](const Run& run) {
    const auto after = std::ranges::upper_bound(runs, run.first, {}, &Run::first);
    return after != runs.begin() && run.last <= std::prev(after)->last;
  });
}

bool RankRuns::meets(const RankRuns& others) const {
  return std::ranges::any_of(others.runs, [&](const Run& run) {
    const auto after = std::ranges::upper_bound(runs, run.last, {}, &Run::first);
    return after != runs.begin() && run.first <= std::prev(after)->last;
  });
}

std::size_t RankRuns::size() const {
  std::size_t count = 0;
  for (const Run& run : runs) count += static_cast<std::size_t>(run.last - run.first) + 1;
  return count;
}

std::string RankRuns::text(std::size_t max_bytes) const {
  std::string out;
  for (const Run& run : runs) {
    const std::string next = (out.empty() ? "" : ",") +
                             (run.first == run.last ? format("{}", run.first) : format("{}-{}", run.first, run.last));
    if (out.size() + next.size() > max_bytes) return out + "...";
    out += next;
  }
  return out;
}

RankRuns united(const RankRuns& one, const RankRuns& other) { return united(std::vector{one, other}); }

RankRuns united(const std::vector<RankRuns>& parts) {
  std::vector<RankRuns::Run> runs;
  for (const RankRuns& part : parts) runs.insert(runs.end(), part.runs.begin(), part.runs.end());
  return {.runs = joined(std::move(runs))};
}

RankRuns normalised(const RankRuns& ranks, std::int32_t world_size) {
  std::vector<RankRuns::Run> runs;
  for (RankRuns::Run run : ranks.runs) {
    run.first = std::max(run.first, 0);
    run.last = std::min(run.last, world_size - 1);
    if (run.first <= run.last) runs.push_back(run);
  }
  return {.runs = joined(std::move(runs))};
}

}  // namespace elastic::hang
