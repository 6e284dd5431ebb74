#include "health/probe/compute.h"

#include <doctest/doctest.h>

using namespace elastic::health;

TEST_CASE("a host that computes and copies well has figures of both") {
  const Attempt<double> compute_ms = measure_compute();
  REQUIRE(compute_ms);
  CHECK(*compute_ms > 0);
  const Attempt<double> memory_gbps = measure_memory();
  REQUIRE(memory_gbps);
  CHECK(*memory_gbps > 0);
}

TEST_CASE("one wrong value in one product of many is found, whichever it is") {
  for (const std::size_t where : {std::size_t{0}, kMatrixSize * kMatrixSize - 1}) {
    int products = 0;
    const Attempt<double> compute_ms = measure_compute([&](const Matrix& left, const Matrix& right, Matrix& out) {
      multiply(left, right, out);
      if (++products == 7) out[where] += 1;
    });
    REQUIRE(!compute_ms);
    CHECK(products == 7);
    CHECK(compute_ms.error().starts_with("a matrix product is wrong: "));
  }
}

TEST_CASE("a product that nothing has written is not taken for that of before") {
  int products = 0;
  CHECK(!measure_compute([&](const Matrix& left, const Matrix& right, Matrix& out) {
    if (++products == 1) multiply(left, right, out);
  }));
}

TEST_CASE("memory that cannot be had is said") {
  const Attempt<double> memory_gbps = measure_memory(std::size_t{1} << 60);
  REQUIRE(!memory_gbps);
  CHECK(memory_gbps.error() ==
        "two buffers of 1099511627776 MiB of memory could not be allocated: Cannot allocate memory");
}
