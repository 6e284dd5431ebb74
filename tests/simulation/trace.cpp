#include "tests/simulation/trace.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "src/base/text.h"

namespace elastic::simulation {

namespace {

// Reads bytes as a little-endian number on every machine.
std::uint64_t word_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t word = 0;
  if (std::endian::native == std::endian::little) {
    std::memcpy(&word, bytes.data(), std::min<std::size_t>(8, bytes.size()));
    return word;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) word |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  return word;
}

}  // namespace

void Trace::add(std::span<const std::uint8_t> bytes) {
  add(bytes.size());
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) add(word_of(bytes.subspan(at, 8)));
  if (at < bytes.size()) add(word_of(bytes.subspan(at)));
}

void Trace::add(std::string_view text) {
  add(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

void Trace::line(std::int64_t now_ms, std::string_view text) {
  if (reader_ != nullptr) *reader_ << format("{:>7}  {}\n", now_ms, text);
}

}  // namespace elastic::simulation
