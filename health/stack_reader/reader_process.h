#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "health/stacks/look.h"
#include "src/base/result.h"

// The process that looks at others (Onlooker), so that neither what it reads nor a lock that it waits for does any harm
// to elastic-run. It is elastic-run itself with kReaderArgument, it is confined, and whoever has started it asks it at
// its descriptor kChannel (src/process/spawn.h), one process at a time, and kills it when it takes too long.
namespace elastic::stacks {

inline constexpr const char* kReaderArgument = "--stack-reader";

// | `--stacks`: the answer about a process; memory and processor time of the process that reads | {kMostAnswerBytes};
// 512 MiB, 10 s | threads beyond it are left out; the reader ends, and another one goes on |
inline constexpr std::size_t kMostAnswerBytes = 1024 * 1024;

// A question: look at that process. With `memory`, an open /proc/PID/mem, or where there is none with the errno.
struct ReaderQuestion {
  std::int32_t pid = 0;
  std::int32_t error = 0;
};
// Fails where the reader takes nothing.
Status ask(int channel, const ReaderQuestion& question, int memory);

// Each question has two answers, a line each: what the kernel says, which no lock delays, and all.
struct ReaderAnswer {
  bool is_last = false;
  ProcessLook look = {};

  static void fields(auto& io, auto& v) { each(io, "last", v.is_last, "look", v.look); }
};
// An answer's line, without its end. Nothing where it is none.
std::optional<ReaderAnswer> read_answer(std::string_view line);

// The whole process: confines itself and answers until the channel is closed. Returns the exit status.
int run_reader_process();

}  // namespace elastic::stacks
