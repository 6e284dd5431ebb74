#include "health/stacks/mappings.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace elastic::stacks {
namespace {

constexpr std::size_t kMostFiles = 4;
constexpr std::string_view kGone = " (deleted)";

// Takes a word and the blanks behind it off the front of a line.
std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
  return word;
}

std::optional<std::uint64_t> hexadecimal(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// "55d0c-55d0f r-xp 00002000 fe:01 1234   /usr/bin/python3.11"; nothing where no file is mapped.
std::optional<MappedFile> read_line(std::string_view line) {
  const std::string_view range = take_word(line);
  take_word(line);
  const auto start = hexadecimal(range.substr(0, range.find('-')));
  const auto offset = hexadecimal(take_word(line));
  const std::string_view device = take_word(line);
  const std::string_view inode = take_word(line);
  if (!start || !offset || !line.starts_with('/')) return {};
  MappedFile file{.start = *start, .offset = *offset};
  file.is_gone = line.ends_with(kGone);
  if (file.is_gone) line.remove_suffix(kGone.size());
  file.path = line;
  file.identity = std::string(device) + " " + std::string(inode);
  return file;
}

bool is_named_python(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("python") || name.starts_with("libpython");
}

}  // namespace

std::vector<MappedFile> python_files(std::string_view maps) {
  std::vector<MappedFile> named;
  std::optional<MappedFile> first;
  while (!maps.empty()) {
    const std::size_t end = std::min(maps.find('\n'), maps.size());
    auto file = read_line(maps.substr(0, end));
    maps.remove_prefix(std::min(end + 1, maps.size()));
    if (!file) continue;
    const bool is_python = is_named_python(file->path);
    if (!first && !is_python) first = *file;
    const bool is_new = std::ranges::find(named, file->identity, &MappedFile::identity) == named.end();
    if (is_python && is_new && named.size() < kMostFiles) named.push_back(*std::move(file));
  }
  if (first && named.size() < kMostFiles) named.push_back(*std::move(first));
  return named;
}

std::uint64_t address_in(const MappedFile& mapped, const PythonInFile& file, std::uint64_t address) {
  // All numbers are unsigned: what is wrong wraps around, and nothing can be read there.
  return address - file.first_address + file.first_offset + mapped.start - mapped.offset;
}

}  // namespace elastic::stacks
