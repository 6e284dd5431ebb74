#include "tests/simulation/trace.h"

#include <algorithm>
#include <string>

#include "src/base/text.h"

namespace elastic::simulation {

// Eight bytes at a time, the lowest first, whatever the machine.
void Trace::add(std::span<const std::uint8_t> bytes) {
  add(bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    const std::size_t count = std::min<std::size_t>(8, bytes.size() - at);
    for (std::size_t i = 0; i < count; ++i) word |= static_cast<std::uint64_t>(bytes[at + i]) << (8 * i);
    add(word);
  }
}

void Trace::add(std::string_view text) {
  add(text.size());
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::uint64_t word = 0;
    const std::size_t count = std::min<std::size_t>(8, text.size() - at);
    for (std::size_t i = 0; i < count; ++i) {
      word |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[at + i])) << (8 * i);
    }
    add(word);
  }
}

void Trace::line(std::int64_t now_ms, std::string_view text) {
  if (reader_ != nullptr) *reader_ << format("{:>7}  {}\n", now_ms, text);
}

}  // namespace elastic::simulation
