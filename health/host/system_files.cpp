#include "health/host/system_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace elastic::health {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFileBytes = 64 * 1024;  // the most that is read of a file
constexpr std::size_t kWordBytes = 64;         // the most that read_word() returns

}  // namespace

std::string read_text(const std::string& path) {
  // With O_NONBLOCK, opening and reading a pipe do not wait for its other end.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text;
  std::array<char, 4096> buffer;
  while (file && text.size() < kFileBytes) {
    const ssize_t count = read(file.get(), buffer.data(), buffer.size());
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

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
