#include "health/host/system_files.h"

#include <algorithm>
#include <filesystem>

#include "src/base/read_file.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFileBytes = 64 * 1024;  // the most that is read of a file
constexpr std::size_t kWordBytes = 64;         // the most that read_word() returns

}  // namespace

std::string read_text(const std::string& path) { return read_file(path, kFileBytes).value_or(""); }

std::string read_word(const std::string& path) { return printable(trim(read_text(path)), kWordBytes); }

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(path, error);
  for (; !error && at != fs::directory_iterator() && names.size() < kSystemEntries; at.increment(error)) {
    names.push_back(at->path().filename());
  }
  std::ranges::sort(names);
  return names;
}

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

Count to_count(std::string_view text) {
  const auto number = parse_int(text);
  return number && *number >= 0 ? Count(static_cast<std::uint64_t>(*number)) : Count();
}

Count count_in(const std::string& path) { return to_count(read_text(path)); }

}  // namespace elastic::health
