#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace elastic::fuzz {

// A fuzzer's input, from its front on. Where it has ended, what is missing reads as 0.
class ByteReader {
 public:
  ByteReader(const std::uint8_t* data, std::size_t size) : input_(reinterpret_cast<const char*>(data), size) {}

  bool at_end() const { return input_.empty(); }
  std::uint8_t byte() {
    if (input_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(input_.front());
    input_.remove_prefix(1);
    return value;
  }
  // Fewer where there are no more.
  std::string_view bytes(std::size_t size) {
    const std::string_view part = input_.substr(0, size);
    input_.remove_prefix(part.size());
    return part;
  }

 protected:
  // What byte() will give.
  std::uint8_t next_byte() const { return ByteReader(*this).byte(); }

 private:
  std::string_view input_;
};

}  // namespace elastic::fuzz
