#include "src/output/lines/line_assembler.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace elastic::output;

namespace {

// The output for pieces that are pushed one by one, and for the incomplete line at the end.
std::string lines(const std::vector<std::string>& pieces, std::size_t max_line_bytes = 16) {
  LineAssembler assembler("p:", max_line_bytes);
  std::string out;
  for (const std::string& piece : pieces) assembler.push(piece, out);
  assembler.flush(out);
  return out;
}

std::string plain(const std::vector<std::string>& pieces) {
  PlainAssembler assembler(16);
  std::string out;
  for (const std::string& piece : pieces) assembler.push(piece, out);
  assembler.flush(out);
  return out;
}

// Pseudo-random numbers that are the same in every run.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t bound) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(state_ >> 33) % bound;
  }

 private:
  std::uint64_t state_;
};

}  // namespace

TEST_CASE("every line gets the prefix, and one that arrives in parts gets it once") {
  CHECK(lines({"one\ntwo\n"}) == "p:one\np:two\n");
  CHECK(lines({"o", "n", "e\nt", "wo", "\n\n", "\n"}) == "p:one\np:two\np:\np:\n");
  CHECK(lines({}) == "");
  CHECK(lines({""}) == "");
}

TEST_CASE("the last line is given out though it has no end, as a line") {
  CHECK(lines({"one\ntw", "o"}) == "p:one\np:two\n");
}

TEST_CASE("nothing of a line is given out before its end has come") {
  LineAssembler assembler("p:");
  std::string out;
  assembler.push("one\ntw", out);
  CHECK(out == "p:one\n");
  CHECK(assembler.has_rest());
  assembler.push("o", out);
  CHECK(out == "p:one\n");
  assembler.push("\n", out);
  CHECK(out == "p:one\np:two\n");
  CHECK_FALSE(assembler.has_rest());
}

TEST_CASE("a rest that is flushed is a line, and its late line end adds no empty one") {
  LineAssembler assembler("p:");
  std::string out;
  assembler.flush(out);
  CHECK(out.empty());
  assembler.push("prompt", out);
  assembler.flush(out);
  CHECK(out == "p:prompt\n");
  assembler.push("\nnext\n", out);
  CHECK(out == "p:prompt\np:next\n");
  assembler.push("a", out);
  assembler.flush(out);
  assembler.push("b\n\n", out);
  CHECK(out == "p:prompt\np:next\np:a\np:b\np:\n");
}

TEST_CASE("CR LF is one line end, an empty line among them included") {
  CHECK(lines({"one\r\ntwo\r\n\r\nfour\r\n"}) == "p:one\np:two\np:\np:four\n");
  CHECK(lines({"one\r", "\n\r", "\n"}) == "p:one\np:\n");
  CHECK(lines({"one\r\r\ntwo\n"}) == "p:one\np:two\n");
}

TEST_CASE("each step of a progress bar is a line at once, and its returns add no empty lines") {
  CHECK(lines({"\r 0%\r 50%\r100%\ndone\n"}) == "p: 0%\np: 50%\np:100%\np:done\n");
  CHECK(lines({"10%\r20%\r\n"}) == "p:10%\np:20%\n");
  CHECK(lines({"\r\r\r"}) == "");
  LineAssembler assembler("p:");
  std::string out;
  assembler.push("10%\r", out);
  CHECK(out == "p:10%\n");
}

TEST_CASE("NUL and bytes that are no UTF-8 pass unchanged") {
  const std::string odd("a\0b\xff\xc3\x28\x1b[0m", 10);
  CHECK(lines({odd + "\n"}) == "p:" + odd + "\n");
}

TEST_CASE("a line beyond the bound is given out in pieces of the bound, each with the prefix") {
  const std::string bound(16, 'x');
  CHECK(lines({bound + "\n"}) == "p:" + bound + "\n");
  CHECK(lines({bound + "y\n"}) == "p:" + bound + "\np:y\n");
  CHECK(lines({bound + bound + "\nz\n"}) == "p:" + bound + "\np:" + bound + "\np:z\n");
  LineAssembler assembler("p:", 16);
  std::string out;
  assembler.push(bound, out);
  CHECK(out.empty());
  assembler.push("y", out);
  CHECK(out == "p:" + bound + "\n");
}

TEST_CASE("how the bytes were cut into pieces makes no difference") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Numbers numbers(seed);
    std::string text;
    for (std::size_t i = numbers.below(120); i > 0; --i) {
      text += "ab\r\n\n\0\xffz"[numbers.below(8)];
    }
    std::vector<std::string> pieces;
    std::vector<std::string> bytes;
    for (std::size_t at = 0; at < text.size();) {
      pieces.push_back(text.substr(at, 1 + numbers.below(9)));
      at += pieces.back().size();
    }
    for (const char c : text) bytes.emplace_back(1, c);
    const std::size_t bound = 1 + numbers.below(6);
    CAPTURE(seed);
    CHECK(lines(pieces, bound) == lines({text}, bound));
    CHECK(lines(bytes, bound) == lines({text}, bound));
    CHECK(plain(pieces) == text);
  }
}

TEST_CASE("without a prefix the bytes come out as they went in") {
  CHECK(plain({"one\r\n", "\r 5%", "\r10%\n", "a rest"}) == "one\r\n\r 5%\r10%\na rest");
}

TEST_CASE("without a prefix a line is kept until its end, a return, or the bound") {
  PlainAssembler assembler(4);
  std::string out;
  assembler.push("one\ntw", out);
  CHECK(out == "one\n");
  CHECK(assembler.has_rest());
  assembler.push("o\r3", out);
  CHECK(out == "one\ntwo\r");
  assembler.push("456", out);
  CHECK(out == "one\ntwo\r");
  assembler.push("7", out);
  CHECK(out == "one\ntwo\r34567");
  CHECK_FALSE(assembler.has_rest());
}
