#include "health/gpu/image.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>

using namespace elastic::health;

TEST_CASE("the GPU probe in elastic-run is one whole ELF program") {
  const std::span<const std::byte> image = gpu_probe_image();
  REQUIRE(image.size() > 1000);
  CHECK(std::memcmp(image.data(), "\177ELF\2\1\1", 7) == 0);
  // The section headers are at the end of the file; the ELF header has their offset, size and number.
  std::uint64_t begin = 0;
  std::uint16_t size = 0;
  std::uint16_t count = 0;
  std::memcpy(&begin, image.data() + 40, sizeof begin);
  std::memcpy(&size, image.data() + 58, sizeof size);
  std::memcpy(&count, image.data() + 60, sizeof count);
  CHECK(begin + std::uint64_t{size} * count == image.size());
}
