#include "src/output/lines/tail.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace elastic::output;

TEST_CASE("a tail keeps everything until there is more than its bound") {
  Tail tail(8);
  CHECK(tail.empty());
  tail.add("abc");
  tail.add("d\nfgh");
  CHECK_FALSE(tail.empty());
  const TailText text = tail.text();
  CHECK(text.bytes == "abcd\nfgh");
  CHECK(text.lines_before == 0);
}

TEST_CASE("a tail keeps the last bytes in order, in whatever pieces they come") {
  for (std::size_t piece = 1; piece < 30; ++piece) {
    Tail tail(8);
    std::string all;
    for (int i = 0; i < 20; ++i) {
      const std::string bytes(piece, static_cast<char>('a' + i));
      tail.add(bytes);
      all += bytes;
      CHECK(tail.text().bytes == all.substr(all.size() - std::min<std::size_t>(all.size(), 8)));
    }
  }
}

TEST_CASE("small pieces and one larger than the bound follow each other in any order") {
  Tail tail(4);
  tail.add("abc");
  tail.add("def");
  tail.add("0123456");
  CHECK(tail.text().bytes == "3456");
  tail.add("g");
  CHECK(tail.text().bytes == "456g");
}

TEST_CASE("a tail begins with a whole line and tells how many came before it") {
  Tail tail(8);
  tail.add("1\n2\n3\n4\n");
  tail.add("5\n");
  TailText text = tail.text();
  CHECK(text.bytes == "2\n3\n4\n5\n");
  CHECK(text.lines_before == 1);
  tail.add("6");
  text = tail.text();
  CHECK(text.bytes == "3\n4\n5\n6");
  CHECK(text.lines_before == 2);
  tail.add("\n0123456\n");
  text = tail.text();
  CHECK(text.bytes == "0123456\n");
  CHECK(text.lines_before == 6);
  tail.add("789\n");
  text = tail.text();
  CHECK(text.bytes == "789\n");
  CHECK(text.lines_before == 7);
}

TEST_CASE("of a line longer than the bound a tail keeps the end") {
  Tail tail(4);
  tail.add("one\n0123456789");
  TailText text = tail.text();
  CHECK(text.bytes == "6789");
  CHECK(text.lines_before == 1);
  tail.add("\n");
  text = tail.text();
  CHECK(text.bytes == "789\n");
  CHECK(text.lines_before == 1);
}
