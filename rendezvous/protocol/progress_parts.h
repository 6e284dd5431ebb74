#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "health/progress/kinds.h"
#include "rendezvous/protocol/message_parts.h"
#include "src/base/limits.h"

namespace elastic::protocol {

// How far a rank was when its node told of it (docs/progress.md).
struct ProgressOfRank {
  std::optional<int> rank = {};  // nothing: one of those of the node that write the same file
  std::optional<std::int64_t> step = {};
  std::optional<std::int64_t> millisteps_per_second = {};
  std::int64_t age_ms = 0;  // since its last sign of progress
  progress::Source source = progress::Source::kLines;
  progress::Phase phase = progress::Phase::kUnknown;
  std::string section = {};  // progress::Progress::section
  bool operator==(const ProgressOfRank&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "rank", v.rank, "step", v.step, "millisteps_per_second", v.millisteps_per_second);
    io("age_ms", v.age_ms, bounds::kMs);
    each(io, "source", v.source, "phase", v.phase);
    io.if_set("section", v.section, at_most(limits::kNvrxSectionBytes));
  }
};

}  // namespace elastic::protocol
