#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "health/stacks/elf_file.h"

namespace elastic::stacks {

// A file that a process has mapped and that may be Python: its program, or a library.
struct MappedFile {
  std::string path = {};      // as the kernel shows it
  std::uint64_t start = 0;    // the lowest address of the file,
  std::uint64_t offset = 0;   // and which place in the file is there
  std::string identity = {};  // device and inode: equal texts are the same file
  bool is_gone = false;       // it was removed or replaced since
  bool operator==(const MappedFile&) const = default;
};

// Which files of /proc/PID/maps are to be looked at, the likeliest first, four at most: those whose names begin with
// "python" or "libpython", and the first file, which mostly is the program.
std::vector<MappedFile> python_files(std::string_view maps);

// An address of the file, as the process has it. Meaningless where the file is another one than was mapped.
std::uint64_t address_in(const MappedFile& mapped, const PythonInFile& file, std::uint64_t address);

}  // namespace elastic::stacks
