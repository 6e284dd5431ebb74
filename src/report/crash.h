#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/report/failure.h"

namespace elastic::report {

// A Python error that the next attempt will repeat unless somebody changes a file.
struct PythonCrash {
  enum class Kind : std::uint8_t {
    kImport,       // ImportError, ModuleNotFoundError; `python -m` of what is not there
    kSyntax,       // SyntaxError, IndentationError, TabError
    kMissingFile,  // FileNotFoundError; a script that Python cannot open
  };
  Kind kind = Kind::kImport;
  std::string type;  // "ModuleNotFoundError"
  std::string text;  // "No module named 'x'": only the first line, for other processes may have written what follows
  std::string location;  // the deepest frame: `"train.py", line 3`; empty where Python names none

  // An FNV-1a hash of all members. It protects against accidental matches, not against an attacker.
  std::uint64_t digest() const;
  bool operator==(const PythonCrash&) const = default;
};

// The error that ended the worker, if it is of such a kind: from its error.json, or else from the end of its stderr.
// Only a few lines may follow the error there, for a program that goes on printing has survived it. None for a worker
// that a signal has ended, unless it had written its error.json before it was told to stop.
std::optional<PythonCrash> crash_of(const FailedWorker& worker);

}  // namespace elastic::report
