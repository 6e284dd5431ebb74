#pragma once

#include <string>
#include <vector>

namespace elastic::numa {

// A worker that is not bound as was asked for.
struct Warning {
  enum class Kind : unsigned char { kCpusNotBound, kOtherCpus, kMemoryNotBound };
  Kind kind = Kind::kCpusNotBound;
  int local_rank = 0;
  std::string reason = {};
};

// All of them in one text, workers with the same reason together: "the CPUs of local ranks 2-3 are not bound: ...; the
// memory of ...". Empty where there is none.
std::string text_of(const std::vector<Warning>& warnings);

}  // namespace elastic::numa
