#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace elastic::stacks {

// The least file that has what is looked for: header, a segment, four sections, their names, symbols and theirs.
inline std::vector<std::uint8_t> small_elf_file() {
  constexpr std::size_t kSegment = 64, kSections = 120, kNames = 376, kSymbols = 408, kSymbolNames = 456, kEnd = 472;
  std::vector<std::uint8_t> file(kEnd);
  const auto put = [&file](std::size_t at, auto value) { std::memcpy(file.data() + at, &value, sizeof value); };
  const auto text = [&file](std::size_t at, std::string_view bytes) {
    std::memcpy(file.data() + at, bytes.data(), bytes.size());
  };
  text(0,
       "\x7f"
       "ELF\x02\x01");
  put(32, std::uint64_t{kSegment}), put(40, std::uint64_t{kSections});
  put(54, std::uint16_t{56}), put(56, std::uint16_t{1}), put(58, std::uint16_t{64}), put(60, std::uint16_t{4});
  put(62, std::uint16_t{1});
  put(kSegment, std::uint32_t{1}), put(kSegment + 16, std::uint64_t{0x400000});
  const auto section = [&](std::size_t index, std::uint32_t name, std::uint32_t type, std::uint64_t address,
                           std::uint64_t offset, std::uint64_t size, std::uint32_t link) {
    const std::size_t at = kSections + index * 64;
    put(at, name), put(at + 4, type), put(at + 16, address), put(at + 24, offset), put(at + 32, size);
    put(at + 40, link);
  };
  section(0, 1, 1, 0x55555, 0, 0, 0);
  section(1, 12, 3, 0, kNames, 32, 0);
  section(2, 0, 11, 0, kSymbols, 48, 3);
  section(3, 0, 3, 0, kSymbolNames, 16, 0);
  text(kNames, std::string_view("\0.PyRuntime\0.names\0", 19));
  put(kSymbols + 24, std::uint32_t{1}), put(kSymbols + 32, std::uint64_t{0x77777});
  text(kSymbolNames, std::string_view("\0Py_Version\0", 12));
  return file;
}

}  // namespace elastic::stacks
