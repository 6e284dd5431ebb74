#include "src/numa/binding.h"

#include <doctest/doctest.h>

using namespace elastic::numa;

TEST_CASE("workers that are not bound for the same reason are named together") {
  using Kind = Warning::Kind;
  CHECK(text_of({}).empty());
  CHECK(text_of({{Kind::kCpusNotBound, 1, "why"}}) == "the CPUs of local rank 1 are not bound: why");
  CHECK(text_of({{Kind::kCpusNotBound, 1, "why"},
                 {Kind::kMemoryNotBound, 1, "why"},
                 {Kind::kCpusNotBound, 2, "why"},
                 {Kind::kOtherCpus, 4, "too few"}}) ==
        "the CPUs of local ranks 1-2 are not bound: why; the memory of local rank 1 is not bound: why; the CPUs of "
        "local rank 4 are perhaps not those that were asked for: too few");
  std::vector<Warning> each_its_own;
  for (int rank = 0; rank < 6; ++rank) each_its_own.push_back({Kind::kCpusNotBound, rank, std::to_string(rank)});
  CHECK(text_of(each_its_own).find("local rank 5 are not bound: 5") != std::string::npos);
}
