#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "health/hang_evidence/evidence_part.h"
#include "src/base/environment.h"

// The process that reads one part of a node's evidence, so that what hangs hangs there. It is elastic-run itself with
// kEvidenceArgument, and has the workers' environment. At its descriptor kChannel (src/process/spawn.h) it reads a
// task, a line, answers by one, and ends. Whoever has started it kills it when it takes too long.
namespace elastic::evidence {

inline constexpr const char* kEvidenceArgument = "--evidence-reader";

// | a part of a node's evidence: a task and an answer; a process's memory, and its processor time (flight recorder and
// RAS; the others but GPUs) | {kMostEvidenceBytes}; 3 GiB and 20 s; 512 MiB and 10 s | the part is lost |
inline constexpr std::size_t kMostEvidenceBytes = 16 * 1024 * 1024;

// For how long a part may take; then its process is killed.
std::int64_t limit_ms(hang::Part part);

// A task's and an answer's line, without its end. Nothing where a line is none.
std::string line_of(const hang::EvidenceTask& task);
std::optional<hang::EvidenceAnswer> read_evidence(std::string_view line);

// The whole process. Returns the exit status.
int run_evidence_process(const Environment& environment);

}  // namespace elastic::evidence
