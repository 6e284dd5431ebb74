#include "health/progress/line_cutter.h"

#include <doctest/doctest.h>

#include <vector>

#include "health/progress/limits.h"

using namespace elastic;
using namespace elastic::progress;

namespace {

std::vector<std::string> cut(LineCutter& cutter, std::string_view bytes, std::int64_t now_ms = 0) {
  std::vector<std::string> lines;
  cutter.push(bytes, now_ms, [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

}  // namespace

TEST_CASE("lines end at a line feed or a carriage return, in whatever pieces they come") {
  LineCutter cutter;
  CHECK(cut(cutter, "one\ntw") == std::vector<std::string>{"one"});
  CHECK(cut(cutter, "o\rthree\r\n\nfour") == std::vector<std::string>{"two", "three"});
  CHECK(cut(cutter, "\r") == std::vector<std::string>{"four"});
}

TEST_CASE("colours and other CSI sequences are left out, also where they come in pieces") {
  LineCutter cutter;
  CHECK(cut(cutter, "\x1b[31mstep:\x1b[0m 10\n") == std::vector<std::string>{"step: 10"});
  CHECK(cut(cutter, "a\x1b").empty());
  CHECK(cut(cutter, "[2").empty());
  CHECK(cut(cutter, "Kb\n") == std::vector<std::string>{"ab"});
}

TEST_CASE("of a long line the beginning is kept, and its rest is not a line of its own") {
  LineCutter cutter;
  const std::string line(10 * limits::kProgressLineBytes, 'x');
  CHECK(cut(cutter, line).empty());
  CHECK(cut(cutter, line + "\nnext\n") ==
        std::vector<std::string>{std::string(limits::kProgressLineBytes, 'x'), "next"});
}

TEST_CASE("of a large read the end is looked at, from the first line that begins in it") {
  LineCutter cutter;
  std::string bytes = "first\n" + std::string(limits::kProgressReadBytes, 'x') + "\nlast\n";
  CHECK(cut(cutter, bytes) == std::vector<std::string>{"last"});
}

TEST_CASE("a worker that floods has so many lines read in a tenth of a second, and goes on with a whole line") {
  LineCutter cutter;
  std::string bytes;
  for (std::size_t i = 0; i < 2 * limits::kProgressLines; ++i) bytes += "x\n";
  CHECK(cut(cutter, bytes, 1000).size() == limits::kProgressLines);
  CHECK(cut(cutter, "more\nmore\nstill in the sa", 1050).empty());
  CHECK(cut(cutter, "me line\nnext\n", 1100) == std::vector<std::string>{"next"});
}

TEST_CASE("of a file that has grown by many lines the last ones are read, each of them whole") {
  LineCutter cutter;
  const auto grown = [&cutter](std::string_view bytes, bool follows_gap, std::int64_t now_ms) {
    std::vector<std::string> lines;
    cutter.push_end(bytes, follows_gap, now_ms, [&](std::string_view line) { lines.emplace_back(line); });
    return lines;
  };
  CHECK(grown("one\nstep: 12", false, 1000) == std::vector<std::string>{"one"});
  CHECK(grown("3\n", false, 2000) == std::vector<std::string>{"step: 123"});
  std::string many = "step: 12";
  for (std::size_t i = 0; i < 2 * limits::kProgressLines; ++i) many += "x\n";
  const auto read = grown(many + "step: 9\nstep: 4", false, 3000);
  REQUIRE(read.size() == limits::kProgressLines);
  CHECK(read.back() == "step: 9");
  CHECK(grown("345 loss\nnext\n", true, 4000) == std::vector<std::string>{"next"});
  CHECK(grown("whole\n", false, 5000) == std::vector<std::string>{"whole"});
}
