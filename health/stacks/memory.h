#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace elastic::stacks {

// The bytes of another process, or of a file, by their address. What they say is not to be trusted: they change while
// they are read, and may be anything.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  virtual ~Memory() = default;

  // Fills `out` with the bytes from `address` on. Returns false where not all of them can be read; `out` may be
  // anything then.
  virtual bool read(std::uint64_t address, std::span<std::uint8_t> out) = 0;
};

// A number of the width of T, in the byte order of this machine.
template <class T>
std::optional<T> number_at(Memory& memory, std::uint64_t address) {
  std::uint8_t bytes[sizeof(T)];
  if (!memory.read(address, bytes)) return {};
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// The same of bytes that were read already; 0 where they are too few.
template <class T>
T number_in(std::span<const std::uint8_t> bytes, std::uint64_t offset) {
  T value{};
  if (offset <= bytes.size() && sizeof value <= bytes.size() - offset) {
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  }
  return value;
}

// Whether an object of CPython may begin there: not at 0 or near it, not in the kernel's half, and aligned.
constexpr bool may_be_object(std::uint64_t address) {
  constexpr std::uint64_t kLeast = 4096;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 56;
  return address >= kLeast && address < kMost && address % 8 == 0;
}

// Memory that is a text.
class TextMemory : public Memory {
 public:
  explicit TextMemory(std::span<const std::uint8_t> bytes, std::uint64_t begin = 0) : bytes_(bytes), begin_(begin) {}

  bool read(std::uint64_t address, std::span<std::uint8_t> out) override {
    const std::uint64_t offset = address - begin_;
    if (address < begin_ || offset > bytes_.size() || out.size() > bytes_.size() - offset) return false;
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return true;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::uint64_t begin_;
};

}  // namespace elastic::stacks
