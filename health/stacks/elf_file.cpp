#include "health/stacks/elf_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

namespace elastic::stacks {
namespace {

constexpr std::uint64_t kMostSections = 512;
constexpr std::uint64_t kMostSegments = 64;
constexpr std::uint64_t kMostNameBytes = 64 * 1024;          // of sections
constexpr std::uint64_t kMostSymbolBytes = 1024 * 1024;      // 43,690 symbols
constexpr std::uint64_t kMostSymbolNames = 4 * 1024 * 1024;  // bytes

// Sizes and places in the structures of ELF (elf(5)), 64 bits.
constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kSegmentBytes = 56;
constexpr std::size_t kSectionBytes = 64;
constexpr std::size_t kSymbolBytes = 24;
constexpr std::uint32_t kLoad = 1;             // a segment's type
constexpr std::uint32_t kDynamicSymbols = 11;  // a section's type

struct Section {
  std::uint32_t name = 0, type = 0, link = 0;
  std::uint64_t address = 0, offset = 0, size = 0;
};

std::vector<std::uint8_t> bytes_at(Memory& file, std::uint64_t offset, std::uint64_t size, std::uint64_t most) {
  if (size == 0 || size > most) return {};
  std::vector<std::uint8_t> bytes(size);
  if (!file.read(offset, bytes)) bytes.clear();
  return bytes;
}

// The text that begins there and ends with NUL.
std::string_view text_at(const std::vector<std::uint8_t>& names, std::uint64_t offset) {
  if (offset >= names.size()) return {};
  const auto begin = names.begin() + static_cast<std::ptrdiff_t>(offset);
  const auto end = std::find(begin, names.end(), 0);
  return {reinterpret_cast<const char*>(&*begin), static_cast<std::size_t>(end - begin)};
}

std::vector<Section> sections_of(Memory& file, std::span<const std::uint8_t> header) {
  const auto count = number_in<std::uint16_t>(header, 60);
  if (number_in<std::uint16_t>(header, 58) != kSectionBytes || count > kMostSections) return {};
  const auto bytes =
      bytes_at(file, number_in<std::uint64_t>(header, 40), count * kSectionBytes, kMostSections * kSectionBytes);
  std::vector<Section> sections;
  for (std::size_t at = 0; at < bytes.size(); at += kSectionBytes) {
    const auto one = std::span(bytes).subspan(at, kSectionBytes);
    sections.push_back({.name = number_in<std::uint32_t>(one, 0),
                        .type = number_in<std::uint32_t>(one, 4),
                        .link = number_in<std::uint32_t>(one, 40),
                        .address = number_in<std::uint64_t>(one, 16),
                        .offset = number_in<std::uint64_t>(one, 24),
                        .size = number_in<std::uint64_t>(one, 32)});
  }
  return sections;
}

// Sets the first loaded byte. Returns false if nothing is loaded.
bool find_first(Memory& file, std::span<const std::uint8_t> header, PythonInFile& found) {
  const auto count = number_in<std::uint16_t>(header, 56);
  if (number_in<std::uint16_t>(header, 54) != kSegmentBytes || count > kMostSegments) return false;
  const auto bytes =
      bytes_at(file, number_in<std::uint64_t>(header, 32), count * kSegmentBytes, kMostSegments * kSegmentBytes);
  for (std::size_t at = 0; at < bytes.size(); at += kSegmentBytes) {
    const auto one = std::span(bytes).subspan(at, kSegmentBytes);
    if (number_in<std::uint32_t>(one, 0) != kLoad) continue;
    found.first_offset = number_in<std::uint64_t>(one, 8);
    found.first_address = number_in<std::uint64_t>(one, 16);
    return true;
  }
  return false;
}

std::optional<std::uint64_t> symbol(Memory& file, const std::vector<Section>& sections, std::string_view wanted) {
  const auto table = std::ranges::find(sections, kDynamicSymbols, &Section::type);
  if (table == sections.end() || table->link >= sections.size()) return {};
  const Section& text = sections[table->link];
  const auto names = bytes_at(file, text.offset, text.size, kMostSymbolNames);
  const auto symbols = bytes_at(file, table->offset, table->size, kMostSymbolBytes);
  for (std::size_t at = 0; at + kSymbolBytes <= symbols.size(); at += kSymbolBytes) {
    const auto one = std::span(symbols).subspan(at, kSymbolBytes);
    if (text_at(names, number_in<std::uint32_t>(one, 0)) != wanted) continue;
    return number_in<std::uint64_t>(one, 8);
  }
  return {};
}

}  // namespace

std::optional<PythonInFile> python_in(Memory& file) {
  // Magic, 64 bits, little-endian.
  constexpr std::array<std::uint8_t, 6> kOurs = {0x7F, 'E', 'L', 'F', 2, 1};
  std::array<std::uint8_t, kHeaderBytes> header{};
  if (!file.read(0, header) || std::memcmp(header.data(), kOurs.data(), kOurs.size()) != 0) return {};
  PythonInFile found;
  const std::vector<Section> sections = sections_of(file, header);
  const auto names_index = number_in<std::uint16_t>(header, 62);
  if (names_index >= sections.size() || !find_first(file, header, found)) return {};
  const auto names = bytes_at(file, sections[names_index].offset, sections[names_index].size, kMostNameBytes);
  const auto runtime = std::ranges::find_if(
      sections, [&](const Section& section) { return text_at(names, section.name) == ".PyRuntime"; });
  if (runtime == sections.end()) return {};
  found.runtime = runtime->address;
  found.version_symbol = symbol(file, sections, "Py_Version");
  return found;
}

}  // namespace elastic::stacks
