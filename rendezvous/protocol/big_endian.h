#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

// Numbers as they stand in frames: the highest byte first.
namespace elastic::protocol {

template <std::unsigned_integral T>
std::array<std::uint8_t, sizeof(T)> to_big_endian(T number) {
  if constexpr (std::endian::native == std::endian::little) number = std::byteswap(number);
  return std::bit_cast<std::array<std::uint8_t, sizeof(T)>>(number);
}

// The number that the first bytes are; there are at least as many as it has.
template <std::unsigned_integral T>
T from_big_endian(std::span<const std::uint8_t> bytes) {
  T number = 0;
  std::memcpy(&number, bytes.data(), sizeof(T));
  if constexpr (std::endian::native == std::endian::little) number = std::byteswap(number);
  return number;
}

}  // namespace elastic::protocol
