#include "src/numa/number_list.h"

#include <doctest/doctest.h>

using namespace elastic::numa;

TEST_CASE("a list of CPUs is read as sysfs writes it") {
  CHECK(parse_number_list("0-3,8,10-11\n") == std::vector<int>{0, 1, 2, 3, 8, 10, 11});
  CHECK(parse_number_list("5\n") == std::vector<int>{5});
  CHECK(parse_number_list("64-65,0-1") == std::vector<int>{0, 1, 64, 65});
  CHECK(parse_number_list("3,1,3,1-2") == std::vector<int>{1, 2, 3});
  CHECK(parse_number_list("\n") == std::vector<int>{});
  CHECK(parse_number_list("") == std::vector<int>{});
}

TEST_CASE("what is no list of CPUs is not taken for one") {
  for (const char* text : {"a", "1-", "-1", "1--2", "0-3 8", "65536", "0-4000000000", "99999999999999999999", "0x3"}) {
    CAPTURE(text);
    CHECK(!parse_number_list(text));
  }
}

TEST_CASE("a mask has the bit of each number") {
  CHECK(mask_of(std::vector<int>{}).empty());
  CHECK(mask_of(std::vector<int>{0, 2}) == std::vector<unsigned long>{5});
  CHECK(mask_of(std::vector<int>{1, 64, 130}) == std::vector<unsigned long>{2, 1, 4});
}

TEST_CASE("an intersection has the CPUs that are in both sets") {
  CHECK(intersection(std::vector<int>{0, 1, 4, 9}, std::vector<int>{1, 2, 9, 10}) == std::vector<int>{1, 9});
  CHECK(intersection(std::vector<int>{0}, std::vector<int>{}).empty());
}
