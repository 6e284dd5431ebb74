#include "src/base/environment.h"

namespace elastic {

std::optional<std::string> lookup(const Environment& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

}  // namespace elastic
