#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "health/stacks/bounds.h"
#include "health/stacks/memory.h"
#include "src/base/fields.h"
#include "src/base/result.h"

namespace elastic::stacks {

// A call of a Python function, as a traceback names it.
struct Frame {
  std::string function;
  std::string file;
  int line = 0;  // 0: not known
  bool operator==(const Frame&) const = default;

  static void fields(auto& io, auto& v) {
    io("function", v.function, at_most(kMostNameBytes));
    io("file", v.file, at_most(kMostNameBytes));
    io("line", v.line);
  }
};

// A thread that Python knows.
struct PythonThread {
  std::uint64_t native_id = 0;  // as the kernel has it (/proc/PID/task); 0: not known
  std::vector<Frame> frames;    // the newest call first
  bool is_cut = false;          // there are older calls that are not here
  // The process ran on meanwhile, and this is what was had of it at the last try.
  bool is_torn = false;
};

struct PythonStacks {
  std::string version = {};
  std::vector<PythonThread> threads = {};  // as CPython has them: the newest first
  bool is_cut = false;                     // there are more threads
};

// The calls that all threads of a Python process are in. The interpreter's _PyRuntime is at the address `runtime`; its
// Py_Version is `version`, where that is known. The process need not be stopped, and nothing of it is trusted: what
// was changed while it was read is read again, three times in all. Fails where its version cannot be read, or it has no
// thread (it begins, or ends).
Result<PythonStacks> python_stacks(Memory& memory, std::uint64_t runtime, std::optional<std::uint64_t> version);

// The line of an instruction, from the location table of its code (co_linetable of CPython 3.11 and later; its format
// is in CPython's InternalDocs/code_objects.md). `unit`: the instruction's number, counted in code units of two bytes.
// Returns 0 where the table gives it no line, or ends before it, or is damaged.
int line_at(std::span<const std::uint8_t> table, int first_line, std::uint64_t unit);

}  // namespace elastic::stacks
