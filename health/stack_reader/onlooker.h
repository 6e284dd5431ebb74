#pragma once

#include <map>
#include <optional>
#include <string>

#include "health/stack_reader/descriptor_memory.h"
#include "health/stacks/elf_file.h"
#include "health/stacks/look.h"
#include "health/stacks/mappings.h"
#include "src/base/unique_fd.h"

namespace elastic::stacks {

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
