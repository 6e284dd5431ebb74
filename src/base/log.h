#pragma once

#include <functional>
#include <string_view>

#include "src/base/result.h"

// What elastic-run itself says, on stderr, one event a line: "elastic-run: warning: ...".
// The one place behind which the logging library stands.
namespace elastic::log {

enum class Level { kDebug, kInfo, kWarning, kError, kOff };

// Reads a level as Python's logging names it (torchrun's LOGLEVEL): DEBUG, INFO, WARNING, ERROR,
// CRITICAL or a number. Fails on any other name.
Result<Level> parse_level(std::string_view name);

// Has lines, each with its end, written by somebody else than write_to_stderr(); an empty function: no more.
void set_output(std::function<void(std::string_view line)> output);

// Only events of this level and above are printed; warnings to begin with.
void set_level(Level level);

void debug(std::string_view text);
void info(std::string_view text);
void warning(std::string_view text);
void error(std::string_view text);

}  // namespace elastic::log
