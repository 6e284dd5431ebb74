#include "src/output/log_files.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "src/output/lines/stream_plan.h"

using namespace elastic;
using namespace elastic::output;
namespace fs = std::filesystem;

namespace {

struct Scratch {
  Scratch() {
    char name[] = "/tmp/elastic-run-logs-XXXXXX";
    path = mkdtemp(name);
  }
  ~Scratch() { fs::remove_all(path); }
  std::string path;
};

Result<RoundFiles> open(RunDirectory& run, int restart_count, std::size_t ranks) {
  return run.open({restart_count}, {.ranks = std::vector<unsigned>(ranks)});
}

}  // namespace

TEST_CASE("log files lie where torchrun has them, those that are wanted and no others") {
  const Scratch scratch;
  auto run = RunDirectory::create(scratch.path, "", "none");
  REQUIRE(run.has_value());
  auto files = run->open({0}, {.ranks = {kStdoutBit, 0, kStdoutBit | kStderrBit}, .filtered = kStderrBit});
  REQUIRE(files.has_value());
  const std::string attempt = run->path() + "/attempt_0";
  CHECK(fs::exists(attempt + "/0/stdout.log"));
  CHECK(fs::is_empty(attempt + "/1"));
  CHECK(fs::exists(attempt + "/2/stdout.log"));
  CHECK(fs::exists(attempt + "/filtered_stderr.log"));
  CHECK(!fs::exists(attempt + "/filtered_stdout.log"));
  REQUIRE(files->ranks.size() == 3);
  CHECK(!files->ranks[0].err);
  CHECK(write(files->ranks[2].err.get(), "x", 1) == 1);
  CHECK(fs::file_size(attempt + "/2/stderr.log") == 1);
  CHECK(static_cast<bool>(files->filtered_err));
}

TEST_CASE("a round that keeps the restart count has a directory beside the attempt's, and deletes nothing") {
  const Scratch scratch;
  auto run = RunDirectory::create({}, scratch.path, "none");
  REQUIRE(run.has_value());
  REQUIRE(open(*run, 3, 1).has_value());
  REQUIRE(run->open({3, 5}, {.ranks = {kStdoutBit}}).has_value());
  CHECK(fs::is_directory(run->path() + "/attempt_3/0"));
  CHECK(fs::exists(run->path() + "/attempt_3_round_5/0/stdout.log"));
  fs::remove(run->path() + "/attempt_3_round_5/0/stdout.log");
  run->remove_if_unused();
  CHECK(fs::is_empty(scratch.path));
}

TEST_CASE("a run's directory is base, run id and eight characters, one directory a rank below it") {
  const Scratch scratch;
  auto run = RunDirectory::create(scratch.path + "/a/b", "/nowhere", "job/7");
  REQUIRE(run.has_value());
  CHECK(run->path().starts_with(scratch.path + "/a/b/job_7_"));
  CHECK(fs::path(run->path()).filename().string().size() == std::string("job_7_").size() + 8);
  REQUIRE(open(*run, 2, 3).has_value());
  CHECK(fs::is_directory(run->path() + "/attempt_2/2"));
  CHECK(run->rank_file({2}, 1, "error.json") == run->path() + "/attempt_2/1/error.json");
  run->remove_if_unused();
  CHECK(fs::is_directory(run->path() + "/attempt_2/2"));
}

TEST_CASE("two runs with one id never share a directory") {
  const Scratch scratch;
  const auto first = RunDirectory::create(scratch.path, "", "none");
  const auto second = RunDirectory::create(scratch.path, "", "none");
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  CHECK(first->path() != second->path());
}

TEST_CASE("without a base the run is in the temporary directory, and leaves nothing if it wrote nothing") {
  const Scratch scratch;
  auto run = RunDirectory::create({}, scratch.path, "none");
  REQUIRE(run.has_value());
  REQUIRE(open(*run, 0, 2).has_value());
  run->remove_if_unused();
  CHECK(fs::is_empty(scratch.path));
}

TEST_CASE("a file that a worker wrote is kept, with the directories to it") {
  const Scratch scratch;
  auto run = RunDirectory::create({}, scratch.path, "none");
  REQUIRE(run.has_value());
  REQUIRE(open(*run, 0, 2).has_value());
  std::ofstream(run->rank_file({0}, 1, "error.json")) << "{}";
  run->remove_if_unused();
  CHECK(fs::exists(run->rank_file({0}, 1, "error.json")));
  CHECK(!fs::exists(run->path() + "/attempt_0/0"));
}

TEST_CASE("an attempt takes over what was prepared; what no attempt took is removed, also in a base of the user's") {
  const Scratch scratch;
  auto run = RunDirectory::create(scratch.path, "", "none");
  REQUIRE(run.has_value());
  REQUIRE(open(*run, 0, 1).has_value());
  run->prepare(2);
  CHECK(fs::is_directory(run->path() + "/.next/1"));
  CHECK(!fs::exists(run->path() + "/attempt_1"));
  REQUIRE(open(*run, 1, 3).has_value());
  CHECK(!fs::exists(run->path() + "/.next"));
  for (int rank = 0; rank < 3; ++rank) CHECK(fs::is_directory(run->path() + "/attempt_1/" + std::to_string(rank)));
  run->prepare(3);
  // The next attempt has its directories, even if the prepared ones were removed.
  fs::remove_all(run->path() + "/.next");
  REQUIRE(open(*run, 2, 3).has_value());
  CHECK(fs::is_directory(run->path() + "/attempt_2/2"));
  run->prepare(3);
  run->remove_if_unused();
  CHECK(fs::is_directory(run->path() + "/attempt_2/2"));
  CHECK(!fs::exists(run->path() + "/.next"));
}

TEST_CASE("a run whose directories were cleared away makes them again, for nobody else to read, or fails") {
  const Scratch scratch;
  auto run = RunDirectory::create({}, scratch.path, "none");
  REQUIRE(run.has_value());
  const fs::path base = fs::path(run->path()).parent_path();
  fs::remove_all(base);
  REQUIRE(open(*run, 1, 1).has_value());
  CHECK(fs::is_directory(run->path() + "/attempt_1/0"));
  CHECK(fs::status(base).permissions() == fs::perms::owner_all);
  CHECK(fs::status(run->path()).permissions() == fs::perms::owner_all);
  fs::remove_all(base);
  fs::create_directory_symlink(scratch.path, base);  // another user made it
  CHECK(!open(*run, 2, 1).has_value());
  fs::remove(base);
}

TEST_CASE("a base that is a file, or below one, is an error that names it") {
  const Scratch scratch;
  std::ofstream(scratch.path + "/file") << "x";
  const auto file = RunDirectory::create(scratch.path + "/file", "", "none");
  REQUIRE(!file.has_value());
  CHECK(file.error().text() == "--log-dir=" + scratch.path + "/file: it is a file; name a directory");
  const auto below = RunDirectory::create(scratch.path + "/file/x", "", "none");
  REQUIRE(!below.has_value());
  CHECK(below.error().reason == "Not a directory");
}
