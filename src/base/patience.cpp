#include "src/base/patience.h"

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic {
namespace {

constexpr int kMost = 100;

int factor_set = 1;

}  // namespace

std::optional<int> parse_patience(std::string_view text) {
  const auto factor = parse_int(text);
  if (!factor || *factor < 1 || *factor > kMost) return {};
  return static_cast<int>(*factor);
}

void set_patience(int factor) {
  ELASTIC_CHECK(factor >= 1 && factor <= kMost);
  factor_set = factor;
}

std::int64_t patient_ms(std::int64_t milliseconds) { return milliseconds * factor_set; }

}  // namespace elastic
