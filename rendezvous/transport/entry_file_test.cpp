#include "rendezvous/transport/entry_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "rendezvous/discovery/entry.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::transport;

namespace {

namespace files = std::filesystem;

// A temporary directory, which is removed at the end.
struct Place {
  Place() {
    std::string pattern = (files::temp_directory_path() / "entries.XXXXXX").string();
    directory = mkdtemp(pattern.data());
    path = directory + "/meeting";
  }
  ~Place() { files::remove_all(directory); }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : files::directory_iterator(directory)) out.push_back(entry.path().filename().string());
    return out;
  }
  std::string directory;
  std::string path;
};

std::string entry(int number) {
  return discovery::entry_text({.process = static_cast<protocol::AgentId>(number), .leader = {"10.0.0.5", 4711}});
}

void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// Makes the file older by so many seconds.
void make_older(const std::string& path, int seconds) {
  timespec times[2] = {{time(nullptr) - seconds, 0}, {time(nullptr) - seconds, 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("an entry is set where what was expected is there, and nothing but the file is left") {
  const Place place;
  CHECK(entry_file::read(place.path, "job").value().empty());
  CHECK(entry_file::compare_set(place.path, "job", "", entry(1)).value() == entry(1));
  CHECK(entry_file::read(place.path, "job").value() == entry(1));
  CHECK(entry_file::compare_set(place.path, "job", "", entry(2)).value() == entry(1));
  CHECK(entry_file::compare_set(place.path, "job", entry(3), entry(2)).value() == entry(1));
  CHECK(entry_file::compare_set(place.path, "job", entry(1), entry(2)).value() == entry(2));
  CHECK(entry_file::read(place.path, "job").value() == entry(2));
  CHECK(place.names() == std::vector<std::string>{"meeting"});
}

TEST_CASE("the last job that is taken out takes the file with it") {
  const Place place;
  CHECK(entry_file::compare_set(place.path, "one", "", entry(1)).value() == entry(1));
  CHECK(entry_file::compare_set(place.path, "two", "", entry(2)).value() == entry(2));
  CHECK(entry_file::compare_set(place.path, "one", entry(9), "").value() == entry(1));
  CHECK(entry_file::compare_set(place.path, "one", entry(1), "").value().empty());
  CHECK(entry_file::read(place.path, "two").value() == entry(2));
  CHECK(entry_file::compare_set(place.path, "two", entry(2), "").value().empty());
  CHECK(place.names().empty());
}

TEST_CASE("of many that write at once one wins, and all others hear of it") {
  const Place place;
  constexpr int kMany = 16;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> found(kMany);
    std::vector<std::thread> threads;
    for (int i = 0; i < kMany; ++i) {
      threads.emplace_back([&, i] {
        // Another process may hold the lock for longer than kLockPatienceMs.
        for (int tries = 0; tries < 1000; ++tries) {
          auto answer = entry_file::compare_set(place.path, "job", "", entry(i));
          if (!answer) continue;
          found[static_cast<std::size_t>(i)] = *answer;
          return;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(std::ranges::count(found, found.front()) == kMany);
    CHECK(entry_file::compare_set(place.path, "job", found.front(), "").value().empty());
  }
  CHECK(place.names().empty());
}

TEST_CASE("the lock of a node that died is broken, that of another is waited for") {
  const Place place;
  const std::string lock = place.path + ".lock";
  put(place.path + ".00000000000000aa", "00000000000000aa");
  files::create_hard_link(place.path + ".00000000000000aa", lock);
  SUBCASE("young") {
    const auto answer = entry_file::compare_set(place.path, "job", "", entry(1));
    CHECK(!answer.error().hopeless);
    CHECK(answer.error().reason.contains("meeting.lock, or died less than 5 s ago and left it"));
    CHECK(entry_file::read(place.path, "job").value().empty());
    CHECK(files::exists(lock));
  }
  SUBCASE("old") {
    make_older(lock, 12);
    CHECK(entry_file::compare_set(place.path, "job", "", entry(1)).value() == entry(1));
    CHECK(place.names() == std::vector<std::string>{"meeting"});
  }
  SUBCASE("old, but somebody else's entry is there: no lock is needed to know that") {
    put(place.path, discovery::file_with_entry("", "job", entry(2)).value());
    CHECK(entry_file::compare_set(place.path, "job", "", entry(1)).value() == entry(2));
  }
}

TEST_CASE("what time will not mend is told apart") {
  const Place place;
  const auto failure = [](const entry_file::Outcome& outcome) { return outcome.error(); };
  CHECK(failure(entry_file::read(place.directory + "/none/meeting", "job")).hopeless);
  CHECK(failure(entry_file::read(place.directory + "/none/meeting", "job"))
            .reason.ends_with("/none: No such file or directory"));
  CHECK(failure(entry_file::compare_set(place.directory + "/none/meeting", "job", "", entry(1))).hopeless);
  CHECK(failure(entry_file::read(place.directory, "job")).reason == "it cannot be read: Is a directory");
  put(place.path, "import torch\n");
  CHECK(failure(entry_file::read(place.path, "job")).hopeless);
  CHECK(failure(entry_file::compare_set(place.path, "job", "", entry(1))).hopeless);
  put(place.path, std::string((2 << 20) + 1, ' '));
  CHECK(failure(entry_file::read(place.path, "job")).hopeless);
  CHECK(failure(entry_file::read(place.path, "job")).reason ==
        "it is larger than 2 MiB, so elastic-run has not written it");
  CHECK(place.names() == std::vector<std::string>{"meeting"});  // as it was
}

TEST_CASE("a file system that other hosts do not see is told by its name") {
  const std::string memory = "/dev/shm/meeting";
  if (files::exists("/dev/shm")) CHECK(entry_file::unshared_kind(memory) == "tmpfs");
  CHECK(entry_file::unshared_kind("/proc/meeting").empty());
  CHECK(entry_file::unshared_kind("/none/meeting").empty());
}
