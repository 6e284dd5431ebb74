#pragma once

#include <cstdint>
#include <span>

namespace elastic::stacks {

// The line of an instruction, from the location table of its code (co_linetable of CPython 3.11 and later; its format
// is in CPython's InternalDocs/code_objects.md). `unit`: the instruction's number, counted in code units of two bytes.
// Returns 0 where the table gives it no line, or ends before it, or is damaged.
int line_at(std::span<const std::uint8_t> table, int first_line, std::uint64_t unit);

}  // namespace elastic::stacks
