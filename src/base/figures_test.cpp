#include "src/base/figures.h"

#include <doctest/doctest.h>

using namespace elastic;

TEST_CASE("bytes are told in the largest unit that they fill, with one digit where it says something") {
  CHECK(bytes_text(0) == "0 bytes");
  CHECK(bytes_text(1023) == "1023 bytes");
  CHECK(bytes_text(1024) == "1 KiB");
  CHECK(bytes_text(1.5 * kMib) == "1.5 MiB");
  CHECK(bytes_text(79.6 * kGib) == "79.6 GiB");
  CHECK(short_number(64) == "64");
}
