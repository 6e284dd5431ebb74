#pragma once

#include <cstdint>

// How an input of stacks_fuzzer begins.
namespace elastic::stacks_input {

// The first byte. Of a Python process the next is how many bytes of its memory change (16 at most), each with four
// bytes: before which read, the place (two bytes), and the new value; then the memory follows, of which the first byte
// is at kBegin, and _PyRuntime as well.
enum class Kind : std::uint8_t { kPython11, kPython12, kPython13, kPython14, kElf, kMappings, kLines, kText };
inline constexpr unsigned kKinds = 8;
inline constexpr std::uint64_t kBegin = 0x10000;

}  // namespace elastic::stacks_input
