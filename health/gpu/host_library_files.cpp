#include "health/gpu/host_library_files.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "src/base/read_file.h"

namespace elastic::health {
namespace {

constexpr std::size_t kMostNames = 10'000;
constexpr std::size_t kMostBytes = 64 * 1024;

}  // namespace

bool HostLibraryFiles::is_file(const std::string& path) const {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

std::vector<std::string> HostLibraryFiles::names_in(const std::string& directory) const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  while (!error && entry != std::filesystem::directory_iterator() && names.size() < kMostNames) {
    names.push_back(entry->path().filename());
    entry.increment(error);
  }
  return names;
}

std::optional<std::string> HostLibraryFiles::resolved(const std::string& path) const {
  std::error_code error;
  std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) return {};
  return real.string();
}

std::optional<std::string> HostLibraryFiles::text_of_file(const std::string& path) const {
  if (!is_file(path)) return {};
  auto text = read_file(path, kMostBytes);
  if (!text) return {};
  return *std::move(text);
}

}  // namespace elastic::health
