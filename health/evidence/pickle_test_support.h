#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Writes pickles of protocol 2 as PyTorch's recorder does, opcode by opcode.
namespace elastic::evidence::test {

inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

inline const std::string kBegin = "\x80\x02";
inline const std::string kNothing = "N";
inline const std::string kTrue = "\x88";
inline const std::string kFalse = "\x89";

inline std::string text(std::string_view content) {
  return "X" + little_endian(content.size(), 4) + std::string(content);
}
inline std::string small(std::uint8_t number) { return "K" + little_endian(number, 1); }
inline std::string number(std::int64_t value) {
  return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(value), 8);
}
inline std::string real(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  std::string out = "G";
  for (int i = 7; i >= 0; --i) out += static_cast<char>(bits >> (8 * i) & 0xFF);
  return out;
}
inline std::string pair(const std::string& first, const std::string& second) { return first + second + "\x86"; }

inline std::string together(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += part;
  return out;
}
inline std::string list(const std::vector<std::string>& items) { return "](" + together(items) + "e"; }
// Keys and values in turns.
inline std::string dict(const std::vector<std::string>& items) { return "}(" + together(items) + "u"; }
inline std::string whole(const std::string& value) { return kBegin + value + "."; }

}  // namespace elastic::evidence::test
