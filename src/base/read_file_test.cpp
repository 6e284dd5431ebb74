#include "src/base/read_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

using namespace elastic;

TEST_CASE("a file is read whole, from an offset on, and no further than asked") {
  char directory[] = "/tmp/read_file_test.XXXXXX";
  REQUIRE(mkdtemp(directory) != nullptr);
  const std::string path = std::string(directory) + "/file";
  std::string text;
  for (int i = 0; text.size() < 20'000; ++i) text += std::to_string(i);
  std::ofstream(path) << text;
  CHECK(read_file(path, 1 << 20) == text);
  CHECK(read_file(path, text.size()) == text);
  for (const std::size_t most : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{10'000}}) {
    CHECK(read_file(path, most) == text.substr(0, most));
  }
  CHECK(read_file(path, 10, 15'000) == text.substr(15'000, 10));
  CHECK(read_file(path, 10, 30'000) == "");
  CHECK(read_file("/proc/self/stat", 1 << 20)->starts_with(std::to_string(getpid())));
  CHECK(read_file(path + "/none", 10).error() == ENOTDIR);
  CHECK(read_file(directory, 10).error() == EISDIR);
  REQUIRE(mkfifo((path + ".pipe").c_str(), 0600) == 0);
  CHECK(read_file(path + ".pipe", 10) == "");  // nobody writes to it
  std::filesystem::remove_all(directory);
}
