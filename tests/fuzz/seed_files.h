#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// What the programs that make a fuzzer's seeds have in common: to write them, to check them, to play files.
namespace elastic::seed_files {

using Seeds = std::map<std::string, std::string>;  // file name, input

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void play(const std::string& name, const std::string& input) {
  std::fprintf(stderr, "%s\n", name.c_str());  // where it aborts, this names the input
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

inline int write(const std::filesystem::path& directory, const Seeds& seeds) {
  for (const auto& [name, input] : seeds) {
    const auto path = directory / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << input;
  }
  return 0;
}

inline int check(const std::filesystem::path& directory, const Seeds& seeds) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string name = std::filesystem::relative(entry.path(), directory).string();
    if (entry.is_directory() || seeds.contains(name)) continue;
    std::fprintf(stderr, "%s is none of the seeds: write them anew\n", name.c_str());
    return 1;
  }
  for (const auto& [name, input] : seeds) {
    if (content_of(directory / name) != input) {
      std::fprintf(stderr, "%s is not what the seeds' source says: write them anew\n", name.c_str());
      return 1;
    }
    play(name, input);
  }
  std::fprintf(stderr, "%zu seeds\n", seeds.size());
  return 0;
}

// The program's main().
inline int run(const char* program, const Seeds& seeds, int count, char** arguments) {
  const std::string_view first = count > 1 ? arguments[1] : "";
  if (first == "--write" && count == 3) return write(arguments[2], seeds);
  if (first == "--check" && count == 3) return check(arguments[2], seeds);
  if (count < 2 || first.starts_with('-')) {
    std::fprintf(stderr, "usage: %s --write DIRECTORY | --check DIRECTORY | FILE ...\n", program);
    return 2;
  }
  for (int i = 1; i < count; ++i) play(arguments[i], content_of(arguments[i]));
  return 0;
}

}  // namespace elastic::seed_files
