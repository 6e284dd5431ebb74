#pragma once

#include <cstdint>
#include <optional>

#include "health/stacks/memory.h"

namespace elastic::stacks {

// Where an ELF file has what leads to Python's stacks, as addresses before the file is placed in a process.
struct PythonInFile {
  // Its first loaded byte, and the place of that in the file: where the process has that place, tells the rest.
  std::uint64_t first_address = 0, first_offset = 0;
  std::uint64_t runtime = 0;                         // the section .PyRuntime
  std::optional<std::uint64_t> version_symbol = {};  // the dynamic symbol Py_Version, eight bytes
};

// Looks for them. `file`: its bytes by their place. Nothing where the file is no ELF file of 64 bits in this machine's
// byte order, is damaged, or has no section .PyRuntime.
std::optional<PythonInFile> python_in(Memory& file);

}  // namespace elastic::stacks
