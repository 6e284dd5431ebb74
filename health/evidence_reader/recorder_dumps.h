#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "health/hang_evidence/evidence_part.h"
#include "health/hang_evidence/recorder_facts.h"
#include "src/base/result.h"

namespace elastic::evidence {

// A larger dump is not read.
// | a flight recorder's dump that is read: as a file; the time for each | {kMostDumpBytes}; 7 s | it is not read |
inline constexpr std::size_t kMostDumpBytes = 64 * 1024 * 1024;

// Asks the recorders of these ranks for a dump, where the user has named a pipe or a control socket for that, and reads
// the dumps: what the control server answers, else the files that are written from then on, and else those that were
// written since the round began (a rank whose collective has timed out has written one). Waits `patience_ms` for those
// that were asked for. `before_reading` is called when all
// are asked, and nothing is read if it fails.
std::vector<hang::RankRecorder> read_recorders(const hang::EvidenceTask& task, const hang::RecorderPlaces& places,
                                               std::int64_t patience_ms,
                                               const std::function<Status()>& before_reading = {});

// Waits for the dumps of these ranks, which were asked for by the worker store, and reads them: files that are written
// until `patience_ms` are over, or were since the round began. It takes `least_ms` at least, also if all are there.
std::vector<hang::RankRecorder> await_dumps(const hang::EvidenceTask& task, const hang::RecorderPlaces& places,
                                            std::int64_t patience_ms, std::int64_t least_ms = 0,
                                            const std::function<Status()>& before_reading = {});

// Part::kRecorder and Part::kDumps.
hang::EvidenceAnswer ask_recorders(const hang::EvidenceTask& task, const Environment& environment,
                                   const std::function<Status()>& before_reading = {});
hang::EvidenceAnswer await_recorders(const hang::EvidenceTask& task, const Environment& environment,
                                     const std::function<Status()>& before_reading = {});

}  // namespace elastic::evidence
