#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "health/stacks/memory.h"
#include "src/base/result.h"

namespace elastic::stacks {

// Where CPython keeps what a stack is made of: offsets in bytes within its structures. Of 3.13 and later the
// interpreter's own table says them (_Py_DebugOffsets, at the beginning of _PyRuntime); of 3.11 and 3.12 they are
// constants (64 bits).
struct Layout {
  std::uint64_t runtime_interpreters = 0;  // the first interpreter
  std::uint64_t interpreter_next = 0, interpreter_threads = 0;
  std::uint64_t thread_next = 0, thread_native_id = 0, thread_frame = 0;
  // 3.11 and 3.12: thread_frame is the address of a structure that has the frame there.
  std::optional<std::uint64_t> frame_within = {};
  std::uint64_t frame_previous = 0, frame_code = 0, frame_instruction = 0, frame_owner = 0;
  // Frames with this owner, or a higher one, are no functions of Python.
  std::uint8_t first_foreign_owner = 3;
  bool has_tagged_code = false;  // the lowest bits of frame_code are no part of the address
  std::uint64_t code_file = 0, code_name = 0, code_lines = 0, code_first_line = 0, code_instructions = 0;
  std::uint64_t bytes_size = 0, bytes_data = 0;
  // A text's data follow it, at once where it is ASCII, and behind more members where it is not.
  std::uint64_t text_length = 0, text_state = 0, text_ascii = 0, text_other = 0;
};

struct Python {
  std::string version;  // "3.11.2"
  Layout layout;
};

// What is known of the interpreter whose _PyRuntime is at that address. `version`: its Py_Version, where it was found
// (3.11 and later have one); without it nothing is known of 3.11 and 3.12. Fails where this version cannot be read.
Result<Python> python_at(Memory& memory, std::uint64_t runtime, std::optional<std::uint64_t> version);

}  // namespace elastic::stacks
