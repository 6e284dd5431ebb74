#pragma once

#include <cstdint>
#include <span>
#include <utility>

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

}  // namespace elastic::stacks
