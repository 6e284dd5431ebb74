#pragma once

#include <array>
#include <cstddef>
#include <functional>

#include "health/probe/attempt.h"

// How fast one core of this host computes and copies. Both take many short pieces of work and count the fastest: on a
// crowded machine most pieces are interrupted, but hardly all, while a slow core is slow in each.
namespace elastic::health {

inline constexpr std::size_t kMatrixSize = 128;
using Matrix = std::array<float, kMatrixSize * kMatrixSize>;  // row by row

// out = left * right. None may be another.
void multiply(const Matrix& left, const Matrix& right, Matrix& out);

// The milliseconds of 8 products of float matrices of 128 x 128: 8 times the least time of one. Fails where a
// product is not, in each of its values, what it must be. `product`: what is measured.
Attempt<double> measure_compute(const std::function<void(const Matrix&, const Matrix&, Matrix&)>& product = multiply);

// Larger than what one core has of most machines' caches; where they are larger, they are what is measured.
inline constexpr std::size_t kMemoryBytes = std::size_t{8} << 20;

// The rate in 10^9 bytes/s, read and written, at which the fastest piece of a buffer of `bytes` is copied to another.
// Fails where there is no memory for both.
Attempt<double> measure_memory(std::size_t bytes = kMemoryBytes);

}  // namespace elastic::health
