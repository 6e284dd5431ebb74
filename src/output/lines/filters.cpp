#include "src/output/lines/filters.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"

namespace elastic::output {

LineFilter::LineFilter(std::vector<std::string> parts) : parts_(std::move(parts)) {
  // One part that is in every line makes the others needless.
  if (std::ranges::find(parts_, std::string()) != parts_.end()) parts_ = {std::string()};
}

bool LineFilter::matches(std::string_view line) const {
  return std::ranges::any_of(parts_,
                             [&](const std::string& part) { return line.find(part) != std::string_view::npos; });
}

void LineFilter::copy_matching(std::string_view lines, std::size_t prefix_bytes, std::string& out) const {
  if (!is_given()) return;
  while (!lines.empty()) {
    ELASTIC_CHECK(lines.size() > prefix_bytes);
    const std::size_t end = lines.find('\n', prefix_bytes);
    ELASTIC_CHECK(end != std::string_view::npos);
    if (matches(lines.substr(prefix_bytes, end - prefix_bytes))) {
      out.append(lines.substr(0, end + 1));
    }
    lines.remove_prefix(end + 1);
  }
}

}  // namespace elastic::output
