#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "health/stacks/elf_file.h"
#include "health/stacks/look.h"
#include "health/stacks/mappings.h"
#include "health/stacks/memory.h"
#include "src/base/unique_fd.h"

namespace elastic::stacks {

// The bytes of a file by their place, of /proc/PID/mem those of the process.
class DescriptorMemory : public Memory {
 public:
  explicit DescriptorMemory(UniqueFd file) : file_(std::move(file)) {}

  bool read(std::uint64_t address, std::span<std::uint8_t> out) override;
  explicit operator bool() const { return static_cast<bool>(file_); }

 private:
  UniqueFd file_;
};

// Looks at processes of this host without stopping them. Every call may take for ever where a thread of the process
// holds its memory's lock and waits for a device: see reader_process.h.
class Onlooker {
 public:
  // What the kernel says of the process and its main thread. It takes no lock of the process.
  static ProcessLook kernel_look(int pid);

  // The same, and Python's stacks. `memory` is /proc/PID/mem, or nothing where it may not be opened; `error` is the
  // errno of that.
  ProcessLook read_process(int pid, UniqueFd memory, int error);

 private:
  using Found = std::optional<PythonInFile>;
  const Found& in_file(int pid, const MappedFile& file);
  void read_python(int pid, DescriptorMemory& memory, ProcessLook& look);

  std::map<std::string, Found> files_;  // by identity
};

}  // namespace elastic::stacks
