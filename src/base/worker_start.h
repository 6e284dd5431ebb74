#pragma once

#include <array>
#include <cstdint>

namespace elastic {

// How a worker came to be: an interpreter of its own, or forked from one that had imported already
// (docs/warm-workers.md). All workers that a node has in a round came to be in one way.
enum class WorkerStart : std::uint8_t { kFresh, kWarm };
constexpr auto names_of(WorkerStart) { return std::array{"fresh", "warm"}; }
constexpr const char* name_of(WorkerStart start) { return names_of(start)[static_cast<std::size_t>(start)]; }

}  // namespace elastic
