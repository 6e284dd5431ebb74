#include "health/hang/section_limits.h"

#include <algorithm>

#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::hang {

std::optional<std::int64_t> limit_of(const SectionLimits& limits, std::string_view section) {
  const auto found = std::ranges::find(limits, section, &SectionLimit::name);
  if (found == limits.end()) return {};
  return found->limit_ms;
}

std::string text_of(const SectionLimits& limits) {
  std::vector<std::string> parts;
  for (const SectionLimit& each : limits) {
    parts.push_back(format("{}:{} s", printable(each.name, limits::kNvrxSectionBytes), each.limit_ms / 1000));
  }
  return parts.empty() ? "none" : join(parts, ", ");
}

}  // namespace elastic::hang
