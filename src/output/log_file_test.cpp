#include "src/output/log_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

using namespace elastic;
using namespace elastic::output;
namespace fs = std::filesystem;

namespace {

// A log file in a directory of its own.
struct Place {
  explicit Place(std::uint64_t max_bytes) {
    char name[] = "/tmp/elastic-run-log-XXXXXX";
    directory = mkdtemp(name);
    path = directory + "/stdout.log";
    auto opened = open_log_file(path);
    REQUIRE(opened.has_value());
    file.emplace(thread, path, std::move(*opened), max_bytes,
                 LogFile::Handlers{.on_room = {}, .on_lost = [this](std::string reason) { lost = std::move(reason); }});
  }
  ~Place() { fs::remove_all(directory); }

  void add(std::string_view bytes) {
    file->add(bytes);
    finish();
  }
  void finish() {
    do {
      REQUIRE(thread.wait(10'000));
    } while (thread.run_done());
  }
  std::string content(const std::string& name) const {
    std::ifstream stream(directory + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::size_t count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
  }

  net::SideThread thread;
  std::string directory;
  std::string path;
  std::string lost;
  std::optional<LogFile> file;
};

}  // namespace

TEST_CASE("a log file without a bound grows, and no other is made") {
  Place place(0);
  place.add(std::string(1'000'000, 'x') + "\n");
  place.add("end");
  CHECK(place.content("stdout.log").size() == 1'000'004);
  CHECK(place.count() == 1);
}

TEST_CASE("a log file that is full is renamed, in the place of the one before it") {
  Place place(8);
  place.add("one\ntwo\nthree\n");
  CHECK(place.content("stdout.log.1") == "one\ntwo\n");
  CHECK(place.content("stdout.log") == "three\n");
  place.add("four\n");
  CHECK(place.content("stdout.log.1") == "three\n");
  CHECK(place.content("stdout.log") == "four\n");
  CHECK(place.count() == 2);
  CHECK(place.lost.empty());
}

TEST_CASE("a line whose beginning is in the full file is whole in the new one") {
  Place place(12);
  place.add("one\ntwo\nth");
  CHECK(place.content("stdout.log") == "one\ntwo\nth");
  place.add("ree\nend");
  CHECK(place.content("stdout.log.1") == "one\ntwo\n");
  CHECK(place.content("stdout.log") == "three\nend");
}

TEST_CASE("a log file that somebody has cleared away is begun again when it is full") {
  Place place(8);
  place.add("one\ntwo\n");
  REQUIRE(unlink(place.path.c_str()) == 0);
  place.add("three\n");
  CHECK(place.content("stdout.log") == "three\n");
  CHECK(place.lost.empty());
}

TEST_CASE("a log file that cannot be renamed is given up, with the reason, and stays below its bound") {
  Place place(8);
  REQUIRE(mkdir((place.path + ".1").c_str(), 0700) == 0);
  place.add("one\ntwo\nthree\n");
  CHECK(place.lost == "it cannot be renamed to " + place.path + ".1: Is a directory");
  place.add("four\n");
  CHECK(place.content("stdout.log") == "one\ntwo\n");
}

TEST_CASE("what waits is still written, and rotated, when the log file has gone") {
  Place place(100'000);
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += "0123456789\n";
  place.file->add(text);
  place.file.reset();
  place.finish();
  const std::string kept = place.content("stdout.log.1") + place.content("stdout.log");
  CHECK(kept.size() > 100'000);
  CHECK(kept.size() <= 200'000);
  CHECK(text.ends_with(kept));
}

TEST_CASE("a log file's descriptor is a high one") {
  const Place place(0);
  const auto again = open_log_file(place.path);
  REQUIRE(again.has_value());
  CHECK(again->get() >= 256);
  CHECK((fcntl(again->get(), F_GETFD) & FD_CLOEXEC) != 0);
}
