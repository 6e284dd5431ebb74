#include "src/output/lines/line_assembler.h"

#include <doctest/doctest.h>

using namespace elastic::output;

namespace {

std::string copied(const LineFilter& filter, const std::string& lines) {
  std::string out;
  filter.copy_matching(lines, 3, out);
  return out;
}

}  // namespace

TEST_CASE("a line matches if any of the texts is in it, and case matters") {
  const LineFilter filter({"loss", "a,b"});
  CHECK(filter.matches("step 3 loss 0.1"));
  CHECK(filter.matches("xa,by"));
  CHECK_FALSE(filter.matches("Loss"));
  CHECK_FALSE(filter.matches("los"));
  CHECK_FALSE(filter.matches(""));
}

TEST_CASE("a text with NUL in it is searched whole") {
  const LineFilter filter({std::string("a\0b", 3)});
  CHECK(filter.matches(std::string("xa\0by", 5)));
  CHECK_FALSE(filter.matches("a"));
}

TEST_CASE("an empty text is in every line, and a filter that is not given matches none") {
  CHECK(LineFilter({"x", ""}).matches(""));
  CHECK(LineFilter({""}).matches("anything"));
  CHECK_FALSE(LineFilter().matches("anything"));
  CHECK_FALSE(LineFilter().is_given());
  CHECK(LineFilter({""}).is_given());
}

TEST_CASE("matching lines are copied with their prefix, in which nothing is searched") {
  CHECK(copied(LineFilter({"0"}), "[0]a0\n[0]b\n[0]\n[0]0\n") == "[0]a0\n[0]0\n");
  CHECK(copied(LineFilter({"]c"}), "[0]c\n").empty());
  CHECK(copied(LineFilter({""}), "[0]a\n[0]\n") == "[0]a\n[0]\n");
  CHECK(copied(LineFilter(), "[0]a\n").empty());
}

TEST_CASE("a prefix with a line end in it does not make two lines of one") {
  CHECK(copied(LineFilter({"x"}), "a\n:x\na\n:y\n") == "a\n:x\n");
}
