#include "health/stack_reader/descriptor_memory.h"

#include <unistd.h>

#include <cerrno>

namespace elastic::stacks {

bool DescriptorMemory::read(std::uint64_t address, std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const ssize_t count = pread(file_.get(), out.data(), out.size(), static_cast<off_t>(address));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    out = out.subspan(static_cast<std::size_t>(count));
    address += static_cast<std::uint64_t>(count);
  }
  return true;
}

}  // namespace elastic::stacks
