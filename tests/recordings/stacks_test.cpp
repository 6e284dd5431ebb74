// The stacks of real interpreters, from what was recorded of their memory (stacks_images.py), against what Python's
// faulthandler said at the same moment.

#include "health/stacks/python_stacks.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/text.h"

using namespace elastic;
using namespace elastic::stacks;

namespace {

// What was recorded of a process.
class RecordedMemory : public Memory {
 public:
  explicit RecordedMemory(const std::string& path) {
    std::ifstream file(path);
    REQUIRE(file);
    for (std::string line; std::getline(file, line);) take(line);
  }

  bool read(std::uint64_t address, std::span<std::uint8_t> out) override {
    auto piece = pieces_.upper_bound(address);
    if (piece == pieces_.begin()) return false;
    --piece;
    TextMemory memory(piece->second, piece->first);
    return memory.read(address, out);
  }

  std::string version_text;
  std::uint64_t runtime = 0, version = 0;
  std::string expected;  // what faulthandler said

 private:
  void take(const std::string& line) {
    std::istringstream words(line);
    std::string what, bytes;
    words >> what;
    if (what == "python") words >> version_text;
    if (what == "runtime") words >> std::hex >> runtime;
    if (what == "version") words >> std::hex >> version;
    if (what == "thread" || what == "frame") expected += line + "\n";
    if (what != "memory") return;
    std::uint64_t address = 0;
    words >> std::hex >> address >> bytes;
    std::vector<std::uint8_t>& piece = pieces_[address];
    for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
      piece.push_back(static_cast<std::uint8_t>(std::strtoul(bytes.substr(i, 2).c_str(), nullptr, 16)));
    }
  }

  std::map<std::uint64_t, std::vector<std::uint8_t>> pieces_;
};

std::string told(const PythonStacks& stacks) {
  std::string out;
  for (const PythonThread& thread : stacks.threads) {
    out += "thread\n";
    for (const Frame& frame : thread.frames) out += format("frame {} {} {}\n", frame.function, frame.line, frame.file);
  }
  return out;
}

}  // namespace

TEST_CASE("the stacks of each recorded interpreter are those that its faulthandler told") {
  for (const char* path : {STACKS_3_11, STACKS_3_12, STACKS_3_13, STACKS_3_14}) {
    RecordedMemory memory(path);
    const auto stacks = python_stacks(memory, memory.runtime, memory.version);
    REQUIRE(stacks);
    CHECK(stacks->version == memory.version_text);
    CHECK(told(*stacks) == memory.expected);
    for (const PythonThread& thread : stacks->threads) CHECK(!thread.is_torn);
  }
}
