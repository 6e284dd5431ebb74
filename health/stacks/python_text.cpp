#include "health/stacks/python_text.h"

#include <vector>

#include "src/base/text.h"

namespace elastic::stacks {
namespace {

// Bytes that were no UTF-8 stand in Python's paths as these (os.fsdecode).
constexpr std::uint32_t kFirstEscape = 0xDC80;
constexpr std::uint32_t kLastEscape = 0xDCFF;

void append_utf8(std::string& out, std::uint32_t point) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  const bool is_surrogate = point >= 0xD800 && point < 0xE000;
  if (point >= kFirstEscape && point <= kLastEscape) return put(point & 0xFF);
  if (is_surrogate || point > 0x10FFFF) point = 0xFFFD;
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xC0 | point >> 6);
  } else {
    if (point < 0x10000) {
      put(0xE0 | point >> 12);
    } else {
      put(0xF0 | point >> 18);
      put(0x80 | (point >> 12 & 0x3F));
    }
    put(0x80 | (point >> 6 & 0x3F));
  }
  put(0x80 | (point & 0x3F));
}

std::uint32_t point_at(std::span<const std::uint8_t> data, std::size_t index, std::size_t width) {
  if (width == 1) return data[index];
  if (width == 2) return number_in<std::uint16_t>(data, index * width);
  return number_in<std::uint32_t>(data, index * width);
}

}  // namespace

std::string python_text(Memory& memory, const Layout& layout, std::uint64_t address, std::size_t most, Kept kept) {
  if (!may_be_object(address)) return {};
  const auto length = number_at<std::uint64_t>(memory, address + layout.text_length);
  const auto state = number_at<std::uint32_t>(memory, address + layout.text_state);
  constexpr std::uint64_t kMostLength = 1 << 20;  // a longer one is none that names something
  if (!length || !state || *length > kMostLength) return {};
  const std::size_t width = *state >> 2 & 7;
  const bool is_compact = (*state >> 5 & 1) != 0;
  const bool is_ascii = (*state >> 6 & 1) != 0;
  if (!is_compact || (width != 1 && width != 2 && width != 4)) return {};
  const std::size_t count = *length < most ? static_cast<std::size_t>(*length) : most;
  const std::uint64_t skipped = kept == Kept::kEnd ? *length - count : 0;
  std::vector<std::uint8_t> data(count * width);
  const std::uint64_t begin = address + (is_ascii ? layout.text_ascii : layout.text_other);
  if (!memory.read(begin + skipped * width, data)) return {};
  std::string text;
  for (std::size_t i = 0; i < count; ++i) append_utf8(text, point_at(data, i, width));
  // Each character is at most four bytes, and a byte becomes at most four.
  std::string shown = printable(text, most * 16);
  if (count == *length) return shown;
  return kept == Kept::kEnd ? "..." + shown : shown + "...";
}

}  // namespace elastic::stacks
