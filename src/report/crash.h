#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/report/failure.h"

namespace elastic::report {

// A Python error of a kind that the next attempt brings again unless somebody changes a file.
struct PythonCrash {
  enum class Kind : std::uint8_t {
    kImport,       // ImportError, ModuleNotFoundError; `python -m` of what is not there
    kSyntax,       // SyntaxError, IndentationError, TabError
    kMissingFile,  // FileNotFoundError; a script that Python cannot open
  };
  Kind kind = Kind::kImport;
  std::string type;      // "ModuleNotFoundError"
  std::string text;      // "No module named 'x'": the first line, since what follows may be others' words
  std::string location;  // of the deepest frame: `"train.py", line 3`; empty where Python has named none

  // FNV-1a over all of them: against mix-ups, not against an enemy.
  std::uint64_t digest() const;
  bool operator==(const PythonCrash&) const = default;
};

// What the worker ended of, where it is such an error: by its error.json, or else by the last words of its stderr,
// behind which only a few lines may stand, for what a program says after a traceback it has survived. Nothing of a
// worker that a signal has ended, unless it had written its error.json before it was told to.
std::optional<PythonCrash> crash_of(const FailedWorker& worker);

}  // namespace elastic::report
