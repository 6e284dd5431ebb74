#include "src/output/lines/rotation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace elastic::output;

namespace {

// All files that a Rotation makes, the newest last.
struct Files {
  explicit Files(std::uint64_t max_bytes, std::size_t max_carry = 64) : rotation(max_bytes, max_carry) {}

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const Rotation::Step step = rotation.next(bytes);
      REQUIRE((step.write > 0 || step.rotate));
      files.back() += bytes.substr(0, step.write);
      bytes.remove_prefix(step.write);
      if (!step.rotate) continue;
      REQUIRE(files.back().ends_with(step.carry));
      files.back().resize(files.back().size() - step.carry.size());
      files.push_back(step.carry);
    }
  }

  Rotation rotation;
  std::vector<std::string> files{""};
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("without a bound nothing is ever rotated") {
  Files all(0);
  all.write(std::string(1'000'000, 'x') + "\n");
  all.write("more");
  CHECK(all.files.size() == 1);
}

TEST_CASE("a file is full where the next line would be too much, and no sooner") {
  Files all(8);
  all.write("one\n");
  all.write("two\n");
  CHECK(all.files == Names{"one\ntwo\n"});
  all.write("3\n");
  CHECK(all.files == Names{"one\ntwo\n", "3\n"});
}

TEST_CASE("what comes at once is divided between lines") {
  Files all(8);
  all.write("one\ntwo\nthree\nfour\n5\n");
  CHECK(all.files == Names{"one\ntwo\n", "three\n", "four\n5\n"});
}

TEST_CASE("the beginning of a line that becomes too long moves to the next file with it") {
  Files all(8);
  all.write("one\nth");
  CHECK(all.files == Names{"one\nth"});
  all.write("ree\n4");
  CHECK(all.files == Names{"one\n", "three\n4"});
  all.write("444444\n");
  CHECK(all.files == Names{"one\n", "three\n", "4444444\n"});
}

TEST_CASE("a line longer than a file is cut where the file is full, and begins a file of its own") {
  Files all(8);
  all.write("one\n0123456789abcdefghij\ntwo\n");
  CHECK(all.files == Names{"one\n", "01234567", "89abcdef", "ghij\n", "two\n"});
}

TEST_CASE("a long line whose beginning is too much to move is cut") {
  Files all(16, 4);
  all.write("one\n01234");
  all.write("56789abcdef\n");
  CHECK(all.files == Names{"one\n0123456789ab", "cdef\n"});
  // The bytes that may move are counted anew for each line.
  all.write("two\n0123");
  all.write("456789\n");
  CHECK(all.files == Names{"one\n0123456789ab", "cdef\ntwo\n", "0123456789\n"});
}

TEST_CASE("whatever comes in whatever pieces: every byte once, no file over the bound, no short line cut") {
  std::uint64_t state = 7;
  const auto below = [&state](std::size_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state >> 33) % bound;
  };
  for (int round = 0; round < 300; ++round) {
    const std::size_t max_bytes = 20 + below(200);
    const std::size_t max_carry = 1 + below(100);
    Files all(max_bytes, max_carry);
    std::string whole;
    for (int line = 0; line < 60; ++line) {
      whole += std::string(below(10) == 0 ? below(400) : below(20), static_cast<char>('a' + line % 26));
      if (line < 59) whole += '\n';
    }
    for (std::size_t at = 0; at < whole.size();) {
      const std::size_t piece = 1 + below(60);
      all.write(std::string_view(whole).substr(at, piece));
      at += piece;
    }
    std::string together;
    for (const std::string& file : all.files) {
      CHECK(file.size() <= max_bytes);
      if (!together.empty() && !together.ends_with('\n')) {
        // A line may be cut only where it has to be.
        const std::size_t begin = together.rfind('\n') + 1;
        const std::size_t end = std::min(whole.find('\n', begin), whole.size());
        CHECK(end - begin + 1 > std::min(max_bytes, max_carry));
      }
      together += file;
    }
    CHECK(together == whole);
  }
}
