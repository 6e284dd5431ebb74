#include "cli/path_search.h"

#include <utility>

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

std::optional<std::vector<std::string>> words_of_command(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && std::string_view(" \t\n").find(c) != std::string_view::npos) {
      in_word = false;
      continue;
    }
    if (!std::exchange(in_word, true)) words.emplace_back();
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else {
      words.back() += c;
    }
  }
  return quote == 0 ? std::optional(words) : std::nullopt;
}

}  // namespace elastic::cli
