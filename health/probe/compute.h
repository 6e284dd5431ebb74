#pragma once

#include <array>
#include <cstddef>
#include <functional>

#include "health/probe/attempt.h"

// How fast one core of this host computes and copies. Both measurements take many short pieces of work and count the
// fastest one: on a busy machine most pieces are interrupted, but hardly all, while a slow core is slow in each of
// them.
namespace elastic::health {

inline constexpr std::size_t kMatrixSize = 128;
using Matrix = std::array<float, kMatrixSize * kMatrixSize>;  // row by row

// out = left * right. The three must be different objects.
void multiply(const Matrix& left, const Matrix& right, Matrix& out);

// The time in ms of 8 products of float matrices of 128 x 128, which is 8 times the least time of one. Fails where any
// value of a product is wrong. `product`: the function that is measured.
Attempt<double> measure_compute(const std::function<void(const Matrix&, const Matrix&, Matrix&)>& product = multiply);

// Larger than one core's share of the caches of most machines; where the caches are larger, they are measured.
inline constexpr std::size_t kMemoryBytes = std::size_t{8} << 20;

// The rate in 10^9 bytes/s, read and written, at which the fastest piece of a buffer of `bytes` is copied to another
// buffer. Fails where the memory for both cannot be allocated.
Attempt<double> measure_memory(std::size_t bytes = kMemoryBytes);

}  // namespace elastic::health
