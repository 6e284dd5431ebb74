#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "health/evidence/flight_recorder.h"
#include "health/hang/hang_facts.h"
#include "src/base/environment.h"

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

// Where PyTorch's flight recorder is asked, and where it leaves its dumps.

struct RecorderPlaces {
  // The stem of the pipes at which a rank is asked for a dump, to which RANK.pipe is appended; nothing: the user has
  // asked for none.
  std::optional<std::string> pipe = {};
  // The path of a control server (health/evidence/control_answer.h); nothing: none is named.
  std::optional<std::string> control = {};
  std::vector<std::string> files = {};  // prefixes of the dumps' files, to which the rank is appended
};

// By the workers' environment: TORCH_FR_DEBUG_INFO_PIPE_FILE, else TORCH_NCCL_DEBUG_INFO_PIPE_FILE;
// TORCH_WORKER_SERVER_SOCKET; the variables TORCH_FR_DUMP_TEMP_FILE and TORCH_NCCL_DEBUG_INFO_TEMP_FILE, and without
// these PyTorch's own places.
RecorderPlaces recorder_places(const Environment& environment);

// The environment that a process has begun with, in the form of /proc/PID/environ.
Environment environment_in(std::string_view text);

}  // namespace elastic::hang
