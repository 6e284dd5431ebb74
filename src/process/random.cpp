#include "src/process/random.h"

#include <sys/random.h>

#include "src/base/check.h"

namespace elastic::process {

void fill_randomly(std::span<std::uint8_t> bytes) {
  ELASTIC_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  ELASTIC_CHECK(getrandom(&number, sizeof number, 0) == static_cast<ssize_t>(sizeof number));
  return number;
}

}  // namespace elastic::process
