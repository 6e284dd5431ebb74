#include "health/stacks/python_stacks.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>

#include "health/stacks/image_test_support.h"
#include "src/base/test_random.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::stacks;

namespace {

// A thread as a line: "11: leaf a.py:12 < main a.py:3".
std::string told(const PythonThread& thread) {
  std::string out;
  for (const Frame& frame : thread.frames) {
    out += format("{}{} {}:{}", out.empty() ? "" : " < ", frame.function, frame.file, frame.line);
  }
  return format("{}: {}{}{}", thread.native_id, out, thread.is_cut ? " (cut)" : "", thread.is_torn ? " (torn)" : "");
}

std::string told(const Result<PythonStacks>& stacks) {
  if (!stacks) return stacks.error().text();
  std::string out = stacks->version;
  for (const PythonThread& thread : stacks->threads) out += "; " + told(thread);
  return out + (stacks->is_cut ? " (cut)" : "");
}

std::string told(Image& image) { return told(python_stacks(image, Image::kBegin, image.version())); }

// Memory that something is done with before each read.
class Changing : public Memory {
 public:
  Changing(Image& image, std::function<void(int)> change) : image_(image), change_(std::move(change)) {}
  bool read(std::uint64_t address, std::span<std::uint8_t> out) override {
    change_(reads_++);
    return image_.read(address, out);
  }

 private:
  Image& image_;
  std::function<void(int)> change_;
  int reads_ = 0;
};

}  // namespace

TEST_CASE("all threads and their calls are read, of each version that is known") {
  for (const unsigned minor : {11U, 12U, 13U, 14U}) {
    Image image(minor);
    const std::uint64_t main = image.code("<module>", "train.py", 1);
    const std::uint64_t leaf = image.code("load", "/data/load.py", 40);
    image.thread(11, image.frame(leaf, 2, image.frame(main, 1, 0)));
    image.thread(12, image.frame(leaf, 0, 0));
    CHECK(told(image) ==
          format("3.{}.2; 12: load /data/load.py:40; 11: load /data/load.py:42 < <module> train.py:2", minor));
  }
}

TEST_CASE("what is no call of a function of Python is passed over") {
  for (const unsigned minor : {12U, 13U, 14U}) {
    Image image(minor);
    const std::uint64_t main = image.code("main", "a.py", 1);
    const std::uint64_t entry = image.frame(0, 0, image.frame(main, 0, 0), 3);
    image.thread(1, image.frame(main, 1, entry));
    CHECK(told(image) == format("3.{}.2; 1: main a.py:2 < main a.py:1", minor));
  }
}

TEST_CASE("names are shown as UTF-8 without control characters, and paths keep their end") {
  Image image(13);
  const std::uint64_t name = image.wide(u"caf\u00e9\u20ac\x9b\xd800");
  const std::uint64_t file = image.wide(u"\xdcff\xdc1b.py");
  image.thread(1, image.frame(image.code(name, file, 1), 0, 0));
  const std::string longest(1000, 'x');
  const std::uint64_t code = image.code(longest + "end", longest + "/e.py", 1);
  image.thread(2, image.frame(code, 0, 0));
  const std::string read = told(image);
  CHECK(read == "3.13.2; 2: " + std::string(128, 'x') + "... ..." + std::string(251, 'x') +
                    "/e.py:1; 1: caf\u00e9\u20ac\\xc2\\x9b\ufffd \\xff\ufffd.py:1");
}

TEST_CASE("an interpreter that is not known, or without threads, is named") {
  Image none(11);
  CHECK(told(none) == "Python's stacks cannot be read: Python 3.11.2 has no thread yet, or none any more");
  for (const std::uint64_t version : {0x030A02F0U, 0x030D02F0U, 0x030F02F0U}) {
    const auto read = python_stacks(none, Image::kBegin, version);
    CHECK(read.error().reason.find("3.11 to 3.14 are known") != std::string::npos);
  }
  CHECK(python_stacks(none, Image::kBegin, {}).error().reason == "the version of Python is not known");
  CHECK(python_stacks(none, 8, none.version()).error().reason == "its memory cannot be read");
  Image free_threaded(14);
  free_threaded.put_at(Image::kBegin + 16, std::uint64_t{1});
  CHECK(told(free_threaded).find("without the GIL") != std::string::npos);
  Image damaged(13);
  damaged.put_at(Image::kBegin + 5 * 8, std::uint64_t{1} << 40);
  CHECK(told(damaged).find("its table of offsets is damaged") != std::string::npos);
}

TEST_CASE("deep calls and many threads are cut") {
  Image image(12);
  const std::uint64_t code = image.code("f", "a.py", 1);
  std::uint64_t frame = 0;
  for (std::size_t i = 0; i < kMostFrames + 1; ++i) frame = image.frame(code, 0, frame);
  image.thread(1, frame);
  const auto deep = python_stacks(image, Image::kBegin, image.version());
  REQUIRE(deep);
  CHECK(deep->threads[0].is_cut);
  CHECK(!deep->threads[0].is_torn);
  CHECK(deep->threads[0].frames.size() == kMostFrames);
  CHECK(!deep->is_cut);
  for (std::size_t i = 0; i < kMostThreads; ++i) image.thread(2 + i, image.frame(code, 0, 0));
  const auto many = python_stacks(image, Image::kBegin, image.version());
  REQUIRE(many);
  CHECK(many->is_cut);
  CHECK(many->threads.size() == kMostThreads);
}

TEST_CASE("lists that lead back into themselves end") {
  Image image(11);
  const std::uint64_t code = image.code("f", "a.py", 1);
  const std::uint64_t frame = image.frame(code, 0, 0);
  image.put_at(frame + image.layout().frame_previous, frame);
  const std::uint64_t thread = image.thread(1, frame);
  image.put_at(thread + image.layout().thread_next, thread);
  const auto read = python_stacks(image, Image::kBegin, image.version());
  REQUIRE(read);
  REQUIRE(read->threads.size() == 1);
  CHECK(read->threads[0].is_cut);
  // The same of frames that are no functions.
  image.put_at(frame + image.layout().frame_owner, std::uint8_t{3});
  CHECK(told(image) == "3.11.2; 1:  (cut)");
}

TEST_CASE("a pointer to nowhere ends a stack, which says so") {
  for (const std::uint64_t nowhere : {std::uint64_t{8}, Image::kBegin + 3, std::uint64_t{1} << 40, ~std::uint64_t{7}}) {
    Image image(12);
    const std::uint64_t code = image.code("f", "a.py", 7);
    image.thread(1, image.frame(code, 0, nowhere));
    CHECK(told(image) == "3.12.2; 1: f a.py:7 (torn)");
  }
}

TEST_CASE("what changes while it is read is read again, and what was had last is told") {
  Image image(12);
  const std::uint64_t code = image.code("f", "a.py", 1);
  const std::uint64_t first = image.frame(code, 0, 0);
  const std::uint64_t second = image.frame(code, 1, first);
  const std::uint64_t thread = image.thread(1, first);
  const std::uint64_t within = number_at<std::uint64_t>(image, thread + image.layout().thread_frame).value();
  SUBCASE("it calls a function once") {
    Changing memory(image, [&](int reads) { image.put_at(within, reads < 10 ? first : second); });
    CHECK(told(python_stacks(memory, Image::kBegin, image.version())) == "3.12.2; 1: f a.py:2 < f a.py:1");
  }
  SUBCASE("it never rests") {
    Changing memory(image, [&](int reads) { image.put_at(within, reads % 2 == 0 ? first : second); });
    const std::string read = told(python_stacks(memory, Image::kBegin, image.version()));
    CHECK(read.find("f a.py:1") != std::string::npos);
  }
}

TEST_CASE("random damage does no harm") {
  TestRandom random(1);
  for (int i = 0; i < 2000; ++i) {
    Image image(11 + static_cast<unsigned>(i % 4));
    const std::uint64_t code = image.code("f", "a.py", 1);
    image.thread(1, image.frame(code, 1, image.frame(code, 0, 0)));
    for (int damage = 0; damage < 4; ++damage) {
      const std::size_t at = random() % image.bytes().size();
      image.bytes()[at] = static_cast<std::uint8_t>(random() % 256);
    }
    const auto read = python_stacks(image, Image::kBegin, image.version());
    if (read) CHECK(read->threads.size() <= kMostThreads);
  }
}
