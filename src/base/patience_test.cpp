#include "src/base/patience.h"

#include <doctest/doctest.h>

using namespace elastic;

TEST_CASE("patience is a whole number from 1 to 100") {
  CHECK(parse_patience("1") == 1);
  CHECK(parse_patience("100") == 100);
  for (const char* text : {"", "0", "-1", "101", "1.5", "2x", "99999999999"}) CHECK_FALSE(parse_patience(text));
}

TEST_CASE("patience stretches what others are given") {
  CHECK(patient_ms(250) == 250);
  set_patience(4);
  CHECK(patient_ms(250) == 1000);
  set_patience(1);
}
