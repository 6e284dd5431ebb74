#include "src/base/text.h"

#include <doctest/doctest.h>

using namespace elastic;

TEST_CASE("an integer is read as Python's int() reads it") {
  CHECK(parse_int("4") == 4);
  CHECK(parse_int(" +4 ") == 4);
  CHECK(parse_int("1_0") == 10);
  CHECK(parse_int("-3") == -3);
  for (const char* bad : {"", " ", "4x", "1__0", "_1", "1_", "+-1", "0x10", "1.5", "--1", "9223372036854775808"}) {
    CHECK_MESSAGE(!parse_int(bad), bad);
  }
}

TEST_CASE("a float must be a finite number and nothing else") {
  CHECK(parse_float("0.1") == 0.1);
  CHECK(parse_float("5") == 5.0);
  CHECK(parse_float("1e-3") == 0.001);
  for (const char* bad : {"", "inf", "nan", "0.1s", "abc"}) CHECK_MESSAGE(!parse_float(bad), bad);
}

TEST_CASE("split keeps empty parts and trim takes blanks off both ends") {
  CHECK(split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
  CHECK(split("", ',') == std::vector<std::string>{""});
  CHECK(trim(" \ta b\n") == "a b");
  CHECK(trim("  ") == "");
}

TEST_CASE("a quoted argument is read back by a shell as the same bytes") {
  CHECK(shell_quote("train.py") == "train.py");
  CHECK(shell_quote("") == "''");
  CHECK(shell_quote("a b") == "'a b'");
  CHECK(shell_quote("it's") == "'it'\\''s'");
  CHECK(shell_quote("a\nb\xff'") == "$'a\\x0ab\\xff\\''");
}

TEST_CASE("what a message shows has no control characters and no broken UTF-8") {
  CHECK(printable("plain é") == "plain é");
  CHECK(printable("a\x1b[0m\xff") == "a\\x1b[0m\\xff");
  CHECK(printable("\xc2\x9b"
                  "31m\xc2\xa0\xc2\x80") == "\\xc2\\x9b31m\xc2\xa0\\xc2\\x80");
  CHECK(printable("abcdef", 3) == "abc...");
}

TEST_CASE("wrapped text stays within its width but for words that are longer") {
  CHECK(wrap("aa bb cc dd", 5, 2) == "aa bb\n  cc\n  dd");
  CHECK(wrap("aaaaaaaa b", 4, 0) == "aaaaaaaa\nb");
}

TEST_CASE("macros are replaced as Python's string.Template.safe_substitute replaces them") {
  const auto expand = [](std::string_view text, TwoDollars two = TwoDollars::kOne) {
    return expand_macros(text, {{"rank", "7"}, {"role_name", "$rank"}}, two);
  };
  CHECK(expand("") == "");
  CHECK(expand("[${role_name}${rank}]:") == "[$rank7]:");
  CHECK(expand("$rank/$rank$rank") == "7/77");
  for (const char* other : {"$ranks $RANK ${ranks} $rank1", "${rank ${} $5 ${5} $"}) {
    CHECK(expand(other) == other);
  }
  CHECK(expand("$rank.x ${rank}x $rank-") == "7.x 7x 7-");
  CHECK(expand("$$ $$rank $$${rank} $$$") == "$ $rank $7 $$");
  CHECK(expand("$${rank}") == "${rank}");
  CHECK(expand("a$$b$${rank}$$$rank", TwoDollars::kTwo) == "a$$b$${rank}$$7");
}

TEST_CASE("a noun beside a count is in the singular for 1 alone") {
  CHECK(counted(1, "node") == "1 node");
  CHECK(counted(0, "node") == "0 nodes");
  CHECK(counted(std::uint64_t{12}, "node") == "12 nodes");
  CHECK(counted(-1, "node") == "-1 nodes");
  CHECK(plural("rank", std::size_t{1}) == "rank");
  CHECK(plural("rank", std::size_t{2}) == "ranks");
}

TEST_CASE("ranks are written as ranges, in order, each once") {
  CHECK(rank_ranges({}).empty());
  CHECK(rank_ranges({5}) == "5");
  CHECK(rank_ranges({9, 1, 2, 2, 3, 7, 6}) == "1-3, 6-7, 9");
}
