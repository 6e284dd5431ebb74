#include "cli/run/whole_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <fstream>
#include <iterator>
#include <string>

#include "src/base/fake_root_test_support.h"

using namespace elastic::run;
using elastic::testing::FakeRoot;

namespace {

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_read(const std::string& path) {
  struct stat facts {};
  REQUIRE(stat(path.c_str(), &facts) == 0);
  return was_read(facts);
}

}  // namespace

TEST_CASE("a file is replaced, and what a program of the user is about to put in its place is left alone") {
  const FakeRoot root;
  const std::string path = root.path / "config";
  for (const char* name : {"config", "config.new", "config.tmp"}) root.file(name, "the user's");
  CHECK(replace_file(path, "ours") == 0);
  CHECK(content(path) == "ours");
  CHECK(content(path + ".new") == "the user's");
  CHECK(content(path + ".tmp") == "the user's");
}

TEST_CASE("it is known whether a file was read since it was written, also where the clock was set back") {
  const FakeRoot root;
  const std::string path = root.path / "config";
  struct statvfs place {};
  REQUIRE(statvfs(root.path.c_str(), &place) == 0);
  if ((place.f_flag & ST_NOATIME) != 0) return;
  for (int i = 0; i < 2; ++i) {
    CHECK(replace_unread_file(path, "ours") == 0);
    CHECK(!is_read(path));
    // Written at a time that is to come yet.
    const timespec times[] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = 4'000'000'000, .tv_nsec = 0}};
    REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
    CHECK(!is_read(path));
    CHECK(content(path) == "ours");
    CHECK(is_read(path));
  }
}
