#include "src/report/python_traceback.h"

#include <doctest/doctest.h>

using namespace elastic::report;

namespace {

constexpr std::string_view kPlain =
    "Traceback (most recent call last):\n"
    "  File \"/job/train.py\", line 9, in main\n"
    "    step(batch)\n"
    "    ~~~~^^^^^^^\n"
    "  [Previous line repeated 996 more times]\n"
    "ValueError: bad batch\n";

constexpr std::string_view kChained =
    "Traceback (most recent call last):\n"
    "  File \"a.py\", line 7, in <module>\n"
    "    int(\"x\")\n"
    "ValueError: invalid literal for int() with base 10: 'x'\n"
    "\n"
    "The above exception was the direct cause of the following exception:\n"
    "\n"
    "Traceback (most recent call last):\n"
    "  File \"a.py\", line 9, in <module>\n"
    "    raise RuntimeError(\"boom\") from e\n"
    "RuntimeError: boom";

std::string prefixed(std::string_view text, std::string_view prefix) {
  std::string out(prefix);
  for (const char c : text) {
    out += c;
    if (c == '\n') out += prefix;
  }
  return out;
}

}  // namespace

TEST_CASE("a traceback is found between other output, with its place") {
  const std::string text = "epoch 1\n" + std::string(kPlain) + "\nresource_tracker: leaked\n";
  const auto found = last_traceback(text);
  REQUIRE(found);
  CHECK(found->text == kPlain.substr(0, kPlain.size() - 1));
  CHECK(found->exception == "ValueError: bad batch");
  CHECK(found->begin == 8);
  CHECK(found->end == 8 + kPlain.size());
  CHECK(text.substr(found->begin, found->end - found->begin) == kPlain);
}

TEST_CASE("chained tracebacks are one, and the last exception is its exception") {
  const auto found = last_traceback(kChained);
  REQUIRE(found);
  CHECK(found->text == kChained);
  CHECK(found->exception == "RuntimeError: boom");
  const std::string context = elastic::report::last_traceback(
                                  "Traceback (most recent call last):\nA: 1\n\nDuring handling of "
                                  "the above exception, another exception "
                                  "occurred:\n\nTraceback (most recent call last):\nB: 2\n")
                                  ->text;
  CHECK(context.starts_with("Traceback (most recent call last):\nA: 1\n\nDuring handling"));
  CHECK(context.ends_with("\nB: 2"));
}

TEST_CASE("of several tracebacks that have nothing to do with each other the last one counts") {
  const auto found = last_traceback(std::string(kPlain) + "retrying\n" + std::string(kChained));
  REQUIRE(found);
  CHECK(found->text == kChained);
}

TEST_CASE("the prefix that torch puts before every line is taken off, lines of others are left out") {
  std::string text = prefixed(kChained, "[rank0]: ");
  text.insert(text.find("[rank0]:     int"), "[rank0]:[W1121 ProcessGroupNCCL.cpp:1538] Warning: x\nanother thread\n");
  const auto found = last_traceback(text);
  REQUIRE(found);
  CHECK(found->text == kChained);
}

TEST_CASE("a log's own words before the header do not hide the traceback") {
  const auto found = last_traceback("2026-11-21 16:46 ERROR " + std::string(kPlain));
  REQUIRE(found);
  CHECK(found->exception == "ValueError: bad batch");
}

TEST_CASE("a traceback that was cut off before its exception does not count, the one before does") {
  const std::string cut(kPlain.substr(0, kPlain.find("ValueError")));
  CHECK_FALSE(last_traceback(cut));
  const auto found = last_traceback(std::string(kPlain) + "\nagain\n" + cut);
  REQUIRE(found);
  CHECK(found->text == kPlain.substr(0, kPlain.size() - 1));
  const std::string chain_cut(kChained.substr(0, kChained.rfind("RuntimeError")));
  const auto before = last_traceback(chain_cut);
  REQUIRE(before);
  CHECK(before->exception.starts_with("ValueError: invalid literal"));
  CHECK(before->text == kChained.substr(0, kChained.find("\n\n")));
}

TEST_CASE("the lines of an exception's message belong to it up to an empty one") {
  const auto found = last_traceback(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\ntorch.AcceleratorError: "
      "CUDA error: x\n"
      "CUDA kernel errors might be reported later.\n\nbye\n");
  REQUIRE(found);
  CHECK(found->text.ends_with("CUDA kernel errors might be reported later."));
  CHECK(found->exception == "torch.AcceleratorError: CUDA error: x");
}

TEST_CASE("an exception group is kept as it is drawn") {
  const std::string_view group =
      "  + Exception Group Traceback (most recent call last):\n"
      "  |   File \"a.py\", line 3, in <module>\n"
      "  |     raise ExceptionGroup(\"several\", errors)\n"
      "  | ExceptionGroup: several (2 sub-exceptions)\n"
      "  +-+---------------- 1 ----------------\n"
      "    | ValueError: one\n"
      "    +---------------- 2 ----------------\n"
      "    | TypeError: two\n"
      "    +------------------------------------";
  const auto found = last_traceback("start\n" + std::string(group) + "\nend\n");
  REQUIRE(found);
  CHECK(found->text == group);
  CHECK(found->exception == "ExceptionGroup: several (2 sub-exceptions)");
}

TEST_CASE("text without a traceback has none, whatever it is") {
  CHECK_FALSE(last_traceback(""));
  CHECK_FALSE(last_traceback("Error: no\n"));
  CHECK_FALSE(last_traceback("Traceback (most recent call last):"));
  CHECK_FALSE(last_traceback(std::string(70, 'x') + std::string(kPlain)));
  CHECK(exception_of("no traceback").empty());
  CHECK(exception_of(kChained) == "RuntimeError: boom");
}
