#include "health/stacks/location_table.h"

#include <optional>

namespace elastic::stacks {
namespace {

constexpr int kMostLine = 1 << 30;

// Reads the numbers of one entry: six bits a byte, the lowest first, and another byte follows where bit 6 is set.
class Numbers {
 public:
  explicit Numbers(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  // Its lowest bit is the sign. Nothing where the table ends within it, or it has more than 32 bits.
  std::optional<std::int64_t> signed_number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift <= 30; shift += 6) {
      if (bytes_.empty()) return {};
      const std::uint8_t byte = bytes_.front();
      bytes_ = bytes_.subspan(1);
      value |= std::uint64_t{byte & 0x3FU} << shift;
      if ((byte & 0x40) != 0) continue;
      const auto size = static_cast<std::int64_t>(value >> 1);
      return (value & 1) != 0 ? -size : size;
    }
    return {};
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

// By how much the line of an entry differs from that of the one before; nothing where the table is damaged. `kind`:
// what the first byte of the entry says, `rest` what is behind it.
std::optional<std::int64_t> line_change(unsigned kind, std::span<const std::uint8_t> rest) {
  constexpr unsigned kOneLine0 = 10;
  constexpr unsigned kOneLine2 = 12;
  constexpr unsigned kNoColumns = 13;
  constexpr unsigned kLong = 14;
  if (kind >= kOneLine0 && kind <= kOneLine2) return kind - kOneLine0;
  if (kind == kNoColumns || kind == kLong) return Numbers(rest).signed_number();
  return 0;
}

}  // namespace

int line_at(std::span<const std::uint8_t> table, int first_line, std::uint64_t unit) {
  constexpr unsigned kNone = 15;
  std::int64_t line = first_line;
  std::uint64_t end = 0;
  while (!table.empty()) {
    const std::uint8_t first = table.front();
    if ((first & 0x80) == 0) return 0;
    table = table.subspan(1);
    const unsigned kind = (first >> 3) & 15U;
    const auto change = line_change(kind, table);
    if (!change) return 0;
    line += *change;
    if (line < 0 || line > kMostLine) return 0;
    end += (first & 7U) + 1;
    if (unit < end) return kind == kNone ? 0 : static_cast<int>(line);
    // The first byte of an entry is the only one with bit 7.
    while (!table.empty() && (table.front() & 0x80) == 0) table = table.subspan(1);
  }
  return 0;
}

}  // namespace elastic::stacks
