#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "health/stacks/layout.h"
#include "health/stacks/memory.h"

namespace elastic::stacks {

// Which end of a text that is too long is kept.
enum class Kept : unsigned char { kBegin, kEnd };

// A str of CPython as UTF-8 that is fit for a screen, at most about `most` characters of it; "..." stands for the rest.
// Empty where it cannot be read, or is none.
std::string python_text(Memory& memory, const Layout& layout, std::uint64_t address, std::size_t most, Kept kept);

}  // namespace elastic::stacks
