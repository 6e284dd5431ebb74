#include "src/base/hosts_file.h"

#include <algorithm>
#include <vector>

#include "src/base/text.h"

namespace elastic {
namespace {

std::vector<std::string> names_of(std::string_view line) {
  std::vector<std::string> words;
  for (const std::string& word : split(replace_all(std::string(line.substr(0, line.find('#'))), "\t", " "), ' ')) {
    if (!trim(word).empty()) words.emplace_back(trim(word));
  }
  if (!words.empty()) words.erase(words.begin());  // the address
  return words;
}

}  // namespace

std::string full_name_in_hosts(std::string_view hosts, std::string_view host) {
  for (const std::string& line : split(hosts, '\n')) {
    const std::vector<std::string> names = names_of(line);
    if (std::ranges::find(names, host) == names.end()) continue;
    const auto full = std::ranges::find_if(
        names, [](const std::string& name) { return name.contains('.') && !name.starts_with("localhost"); });
    if (full != names.end()) return *full;
  }
  return {};
}

}  // namespace elastic
