#include "src/base/screen_text.h"

#include <doctest/doctest.h>

using namespace elastic;

TEST_CASE(
    "text for a terminal keeps UTF-8, tabs and line ends and loses colours and control "
    "characters") {
  CHECK(screen_text("a\tb\nü€😀") == "a\tb\nü€😀");
  CHECK(screen_text("\x1b[31mred\x1b[0m \x1b[1;38;5;9mbold\x1b[m") == "red bold");
  CHECK(screen_text("\x1b]0;title\x07") == "\\x1b]0;title\\x07");
  CHECK(screen_text("\x1b[31") == "\\x1b[31");
  CHECK(screen_text(std::string_view("nul\0\x7f", 5)) == "nul\\x00\\x7f");
  // U+009B is a CSI of its own to some terminals.
  CHECK(screen_text("\xc2\x9b"
                    "2J") == "\\xc2\\x9b2J");
}

TEST_CASE("only colours and cursor movements are taken out of a text that is searched") {
  CHECK(without_colours("\x1b[1;35mValueError\x1b[0m: \x1b[35mbad\x1b[0m\n") == "ValueError: bad\n");
  CHECK(without_colours("a\x1b\xff\rb\x1b[3") == "a\x1b\xff\rb\x1b[3");
  CHECK(without_colours("").empty());
}

TEST_CASE("bytes that are not UTF-8 are shown as hex on a screen and as U+FFFD elsewhere") {
  const std::string_view bad[] = {"\x80",
                                  "\xff",
                                  "\xc0\xaf",
                                  "\xe0\x80\xaf",
                                  "\xed\xa0\x80",
                                  "\xf0\x80\x80\x80",
                                  "\xf4\x90\x80\x80",
                                  "\xf5\x80\x80\x80",
                                  "\xe2\x82",
                                  "\xf0\x9f\x98"};
  for (const std::string_view bytes : bad) {
    CAPTURE(screen_text(bytes));
    CHECK(utf8_length(bytes) == 0);
    CHECK_FALSE(is_utf8(bytes));
    CHECK(screen_text(bytes).size() == 4 * bytes.size());
    CHECK(to_utf8(bytes).size() == 3 * bytes.size());
    CHECK(is_utf8(to_utf8(bytes)));
  }
  CHECK(to_utf8("a\xff"
                "b") ==
        "a\xef\xbf\xbd"
        "b");
  CHECK(is_utf8("ü€😀\xf4\x8f\xbf\xbf"));
  CHECK(character_count("ü€😀a") == 4);
}

TEST_CASE("the last lines are whole, without what a progress bar wrote over") {
  const LastLines last = last_lines("one\ntwo\r\n 10%\r 20%\r 30%\nfour\n\n\n", 3, 100);
  CHECK(last.lines == std::vector<std::string>{"two", " 30%", "four"});
  CHECK(last.left_out == 1);
  CHECK(last_lines("", 3, 100).lines.empty());
  CHECK(last_lines("\n\n", 3, 100).lines.empty());
  CHECK(last_lines("no end", 3, 100).lines == std::vector<std::string>{"no end"});
}

TEST_CASE("a line longer than the bound is cut between characters and says how much is missing") {
  CHECK(last_lines("üüüü", 1, 5).lines.front() == "üü... (4 bytes more)");
}

TEST_CASE("the last bytes of a text begin with a line, or at least with a character") {
  CHECK(last_bytes("abc", 5) == "abc");
  CHECK(last_bytes("first\nsecond\nthird\n", 9) == "third\n");
  CHECK(last_bytes("aüüü", 3) == "ü");
  CHECK(last_bytes("abcdef\n", 3) == "ef\n");
}
