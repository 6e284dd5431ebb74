#pragma once

#include <cstdint>
#include <span>

namespace elastic::process {

// Bytes and numbers of the kernel's generator (getrandom(2)), which nobody can guess. The process ends if it fails.
void fill_randomly(std::span<std::uint8_t> bytes);
std::uint64_t random_number();

}  // namespace elastic::process
