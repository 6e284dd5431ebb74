#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "health/hang/bounds.h"
#include "src/base/fields.h"

namespace elastic::hang {

// Ranks as runs of consecutive ones: what thousands of ranks have in common takes a few bytes. `runs` is sorted, and no
// run touches the next; normalised() makes it so of what another node has sent.
struct RankRuns {
  struct Run {
    std::int32_t first = 0;
    std::int32_t last = 0;
    bool operator==(const Run&) const = default;
    static void fields(auto& io, auto& v) { each(io, "first", v.first, "last", v.last); }
  };
  std::vector<Run> runs = {};

  static RankRuns of(std::vector<std::int32_t> ranks);  // in any order
  static RankRuns all(std::int32_t world_size);

  void add(std::int32_t rank);
  bool contains(std::int32_t rank) const;
  bool includes(const RankRuns& others) const;  // all of them
  bool meets(const RankRuns& others) const;     // one of them at least
  bool empty() const { return runs.empty(); }
  std::size_t size() const;  // of ranks
  std::int32_t front() const { return runs.front().first; }
  // Calls `visit` with each rank, in rising order.
  void for_each(const auto& visit) const {
    for (const Run& run : runs) {
      for (std::int32_t rank = run.first; rank <= run.last; ++rank) visit(rank);
    }
  }
  // "0-4,6-7"; what is longer than `max_bytes` is cut at a comma, and ends in "...".
  std::string text(std::size_t max_bytes = SIZE_MAX) const;

  bool operator==(const RankRuns&) const = default;
  static void fields(auto& io, auto& v) { io("runs", v.runs, at_most(bounds::kRuns)); }
};

// The ranks of both, and of all.
RankRuns united(const RankRuns& one, const RankRuns& other);
RankRuns united(const std::vector<RankRuns>& parts);
// The same with its runs in order, and without ranks below 0 or from `world_size` on.
RankRuns normalised(const RankRuns& ranks, std::int32_t world_size);

}  // namespace elastic::hang
