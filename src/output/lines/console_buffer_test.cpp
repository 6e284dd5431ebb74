#include "src/output/lines/console_buffer.h"

#include <doctest/doctest.h>

using namespace elastic::output;
using Notice = ConsoleBuffer::Notice;

namespace {

std::string take(ConsoleBuffer& buffer, std::size_t max_bytes = 1000) {
  std::string bytes = "what was there before";
  const bool taken = buffer.take_bytes(bytes, max_bytes);
  CHECK(taken == !bytes.empty());
  return bytes;
}

}  // namespace

TEST_CASE("what is added is taken in order, in pieces of any size") {
  ConsoleBuffer buffer(Notice::kInPlace, 100);
  CHECK(take(buffer).empty());
  buffer.add(0, "one\n");
  buffer.add(1, "two\n");
  CHECK(buffer.size() == 8);
  CHECK(take(buffer, 3) == "one");
  CHECK(take(buffer, 3) == "\ntw");
  buffer.add(0, "three\n");
  CHECK(take(buffer) == "o\nthree\n");
  CHECK(buffer.empty());
  CHECK(buffer.dropped().lines == 0);
}

TEST_CASE("beyond the bound whole lines are dropped, and one message stands in their place") {
  ConsoleBuffer buffer(Notice::kInPlace, 200);
  const std::string line(98, 'x');
  buffer.add(0, line + "\n" + line + "\ndropped 1\n");
  buffer.add(1, "a\n");
  buffer.add(0, "dropped 2\n");
  CHECK(buffer.size() == 198);
  CHECK(take(buffer, 97) == std::string(97, 'x'));
  buffer.add(0, "b\n");
  CHECK(buffer.dropped().lines == 4);
  CHECK(buffer.dropped().bytes == 10 + 2 + 10 + 2);
  CHECK(take(buffer, 1) == "x");
  buffer.add(0, "next\n");
  CHECK(take(buffer) == "\n" + line +
                            "\nelastic-run: warning: 4 lines (24 bytes) of worker output were "
                            "dropped: the console is slow\nnext\n");
  CHECK(buffer.dropped().lines == 4);
}

TEST_CASE("lines are dropped until half of the bound is free, then taken again") {
  ConsoleBuffer buffer(Notice::kInPlace, 200);
  buffer.add(0, std::string(199, 'x') + "\n");
  buffer.add(0, "a\n");
  CHECK(take(buffer, 99).size() == 99);
  buffer.add(0, "b\n");
  CHECK(buffer.dropped().lines == 2);
  CHECK(take(buffer, 1) == "x");
  buffer.add(0, "c\n");
  CHECK(buffer.dropped().lines == 2);
  CHECK(take(buffer).ends_with("slow\nc\n"));
}

TEST_CASE("a console for data gets no message, the count tells") {
  ConsoleBuffer buffer(Notice::kNone, 4);
  buffer.add(0, "abc\n");
  buffer.add(0, "def\n");
  CHECK(take(buffer) == "abc\n");
  buffer.add(0, "ghi\n");
  CHECK(take(buffer) == "ghi\n");
  CHECK(buffer.dropped().lines == 1);
  CHECK(buffer.dropped().bytes == 4);
}

TEST_CASE("a line longer than the bound is dropped whole") {
  ConsoleBuffer buffer(Notice::kInPlace, 4);
  buffer.add(0, "abcdefgh\n");
  CHECK(buffer.dropped().lines == 1);
  CHECK(take(buffer) == "elastic-run: warning: 1 line (9 bytes) of worker output was dropped: the console is slow\n");
  buffer.add(0, "ok\n");
  CHECK(take(buffer) == "ok\n");
}

TEST_CASE("a rest without its line end is never glued to another source's line") {
  ConsoleBuffer buffer(Notice::kInPlace, 100);
  buffer.add(0, "Loading...");
  buffer.add(0, "done\n");
  buffer.add(0, "a rest");
  buffer.add(1, "one\n");
  buffer.add(0, "two\n");
  CHECK(take(buffer) == "Loading...done\na rest\none\ntwo\n");
}

TEST_CASE("the message stands on a line of its own behind a rest") {
  ConsoleBuffer buffer(Notice::kInPlace, 4);
  buffer.add(0, "ab");
  buffer.add(0, "cdefg\n");
  CHECK(take(buffer) ==
        "ab\nelastic-run: warning: 1 line (6 bytes) of worker output was dropped: the console is "
        "slow\n");
}

TEST_CASE("a terminal's bytes pass as they are, and lines of others begin on a new line") {
  ConsoleBuffer buffer(Notice::kInPlace, 100);
  buffer.add_raw(0, "\r 10%");
  buffer.add_raw(1, "\r 20%");
  buffer.add(2, "line\n");
  CHECK(take(buffer) == "\r 10%\r 20%\nline\n");
}

TEST_CASE("a line that was begun is ended on demand, and only then") {
  ConsoleBuffer buffer(Notice::kInPlace, 100);
  buffer.end_line();
  CHECK(buffer.at_line_start());
  buffer.add_raw(0, "\r 10%");
  CHECK(!buffer.at_line_start());
  buffer.end_line();
  buffer.end_line();
  CHECK(buffer.at_line_start());
  CHECK(take(buffer) == "\r 10%\n");
}

TEST_CASE("the message about dropped lines is made by whom the owner names") {
  ConsoleBuffer buffer(Notice::kInPlace, 4, [](std::string_view text) { return "<" + std::string(text) + ">\n"; });
  buffer.add(0, "abcdefg\n");
  CHECK(take(buffer) == "<1 line (8 bytes) of worker output was dropped: the console is slow>\n");
}

TEST_CASE("a buffer that is never quite empty does not grow") {
  ConsoleBuffer buffer(Notice::kInPlace, 1000);
  const std::string line(99, 'x');
  buffer.add(0, line + "\n");
  for (int i = 0; i < 10000; ++i) {
    buffer.add(0, line + "\n");
    CHECK(take(buffer, 100) == line + "\n");
  }
  CHECK(buffer.size() == 100);
  CHECK(buffer.memory() <= 4000);
}

TEST_CASE("a line that is dropped in pieces is counted once") {
  ConsoleBuffer buffer(Notice::kNone, 4);
  buffer.add(0, "abcdefgh");
  buffer.add(1, "one\n");
  buffer.add(0, "ijkl");
  buffer.add(0, "mnop\nnext");
  CHECK(buffer.dropped().lines == 3);
  CHECK(buffer.dropped().bytes == 8 + 4 + 4 + 9);
}

TEST_CASE("a line of which a closed console has taken the beginning is counted once") {
  ConsoleBuffer buffer(Notice::kInPlace, 100);
  buffer.add(1, "one\ntwo\nthree\n");
  std::string taken;
  REQUIRE(buffer.take_bytes(taken, 6));
  buffer.give_up("tw");  // "o\n" follows in the waiting bytes
  CHECK(buffer.dropped().lines == 2);
  CHECK(buffer.dropped().bytes == 10);
}

TEST_CASE("what a console that is given up has not taken is counted, with all that comes later") {
  ConsoleBuffer buffer(ConsoleBuffer::Notice::kInPlace, 100);
  buffer.add(1, "one\ntwo\nthree\n");
  std::string taken;
  REQUIRE(buffer.take_bytes(taken, 8));
  buffer.give_up("two\n");
  CHECK(buffer.empty());
  CHECK(buffer.dropped().lines == 2);
  CHECK(buffer.dropped().bytes == 10);
  buffer.add(2, "four\n");
  CHECK(buffer.dropped().lines == 3);
  CHECK(!buffer.take_bytes(taken, 100));
  CHECK(dropped_text(buffer.dropped(), "gone").ends_with("were dropped: gone"));
}

TEST_CASE("a rest that is expected waits beyond the bound, and lines find room behind it") {
  ConsoleBuffer buffer(Notice::kInPlace, 100);
  const std::string line(49, 'x');
  buffer.expect_rest(1000);
  buffer.add(0, line + "\n");
  CHECK(take(buffer).size() == 50);  // bytes may be taken meanwhile
  for (int i = 0; i < 22; ++i) buffer.add(0, line + "\n");
  CHECK(buffer.size() == 1100);
  CHECK(buffer.dropped().lines == 0);
  buffer.rest_has_come();
  buffer.add(1, line + "\n");  // half of the usual bound
  CHECK(buffer.dropped().lines == 0);
  buffer.add(1, "no more\n");
  CHECK(buffer.dropped().lines == 1);
}

TEST_CASE("a rest larger than expected is dropped from there on") {
  ConsoleBuffer buffer(Notice::kNone, 100);
  buffer.expect_rest(50);
  buffer.add(0, std::string(149, 'x') + "\n");
  buffer.add(0, "no more\n");
  CHECK(buffer.size() == 150);
  CHECK(buffer.dropped().lines == 1);
}

TEST_CASE("once a rest has been taken the usual bound holds, and its memory is free") {
  ConsoleBuffer buffer(Notice::kNone, 1000);
  buffer.expect_rest(1'000'000);
  buffer.add(0, std::string(900'000, 'x') + "\n");
  buffer.rest_has_come();
  std::string bytes;
  while (buffer.size() > 500) REQUIRE(buffer.take_bytes(bytes, 1000));
  CHECK(buffer.memory() <= 2000);
  buffer.add(0, std::string(1000, 'x') + "\n");
  CHECK(buffer.dropped().lines == 1);
}

TEST_CASE("a rest that has not come leaves the usual bound") {
  ConsoleBuffer buffer(Notice::kNone, 100);
  buffer.expect_rest(1000);
  buffer.rest_has_come();
  buffer.add(0, std::string(200, 'x') + "\n");
  CHECK(buffer.dropped().lines == 1);
}
