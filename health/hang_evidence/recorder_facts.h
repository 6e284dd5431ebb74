#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "health/evidence/flight_recorder.h"
#include "health/hang/hang_facts.h"

// What flight recorders say, as facts about a hang.
namespace elastic::hang {

// The recorder of one rank: its dump, or why there is none.
struct RankRecorder {
  std::int32_t rank = 0;
  std::optional<evidence::FlightFacts> dump = {};
  SourceFacts why_not = {};  // only without a dump
};

// Groups, what ranks have launched in them, and how far each recorder has come. A dump that is cut off, that has
// incomplete entries, or in which a rank waits for a message from somebody whom it does not name, says nothing about
// groups: its newest entries could say otherwise. It is partial, and so is one whose ring has dropped older entries: a
// group of which it says nothing may have had some.
//
// Members come from the dump; those of gloo's groups it does not have, but for the default group, which has all ranks.
NodeFacts recorder_facts_of(std::span<const RankRecorder> recorders, std::int32_t world_size);
// For people, a line for each rank whose recorder was asked.
std::vector<std::string> recorder_lines(std::span<const RankRecorder> recorders);

}  // namespace elastic::hang
