#pragma once

#include <cstdint>
#include <span>

namespace elastic::process {

// Fills memory with random bytes of the kernel (getrandom(2)), which nobody can guess. Aborts if that fails.
void fill_randomly(std::span<std::uint8_t> bytes);
std::uint64_t random_number();

}  // namespace elastic::process
