#include "cli/path_search.h"

#include "src/base/text.h"

namespace elastic::cli {
namespace {

constexpr const char* kDefaultPath = "/bin:/usr/bin";

}  // namespace

std::vector<std::string> path_folders(const Environment& environment) {
  std::vector<std::string> folders = split(elastic::lookup(environment, "PATH").value_or(kDefaultPath), ':');
  for (std::string& folder : folders) {
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    if (folder.empty()) folder = ".";  // an empty part of PATH is the working directory
  }
  return folders;
}

bool can_execute(const HostView& host, const std::string& path) {
  const HostView::PathFacts facts = host.look_at(path);
  return facts.exists && !facts.directory && facts.executable;
}

std::optional<std::string> on_path(const Environment& environment, const HostView& host, const std::string& name) {
  for (const std::string& folder : path_folders(environment)) {
    std::string path = folder + "/" + name;
    if (can_execute(host, path)) return path;
  }
  return {};
}

}  // namespace elastic::cli
