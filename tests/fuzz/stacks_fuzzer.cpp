// libFuzzer's entry for what reads other processes to show their stacks (health/stacks). The first byte of the input
// says what it is: the memory of a Python process of one of four versions, which changes while it is read; an ELF file;
// a list of mappings; a function's table of lines; or what a reader, a node or an elastic-run has told. Whatever it is,
// nothing may crash or take long, no bound may be exceeded, and no text may have a control character or broken UTF-8.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "health/stacks/document.h"
#include "health/stacks/elf_file.h"
#include "health/stacks/groups.h"
#include "health/stacks/kernel_state.h"
#include "health/stacks/look.h"
#include "health/stacks/mappings.h"
#include "health/stacks/python_stacks.h"
#include "src/base/text.h"
#include "tests/fuzz/byte_reader.h"
#include "tests/fuzz/stacks_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace elastic {
namespace {

using namespace stacks;
using stacks_input::Kind;

// Reads of one process: the most threads and frames with all that each takes, three times.
constexpr std::size_t kMostReads = 2'000'000;

[[noreturn]] void found(const std::string& what) {
  std::fprintf(stderr, "stacks_fuzzer: %s\n", what.c_str());
  std::abort();
}

void check_text(const std::string& text, std::size_t most) {
  if (text.size() > most) found(format("a text has {} bytes", text.size()));
  if (printable(text, text.size()) != text) found("a text is not printable: " + printable(text));
}

// A byte that changes before a certain read.
struct Change {
  std::uint8_t before_read = 0;
  std::uint16_t place = 0;
  std::uint8_t value = 0;
};

class ChangingMemory : public Memory {
 public:
  ChangingMemory(std::vector<std::uint8_t> bytes, std::vector<Change> changes)
      : bytes_(std::move(bytes)), changes_(std::move(changes)) {}

  bool read(std::uint64_t address, std::span<std::uint8_t> out) override {
    if (++reads_ > kMostReads) found("there is no end of reading");
    for (const Change& change : changes_) {
      if (reads_ % 256 == change.before_read && change.place < bytes_.size()) bytes_[change.place] = change.value;
    }
    return TextMemory(bytes_, stacks_input::kBegin).read(address, out);
  }

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<Change> changes_;
  std::size_t reads_ = 0;
};

std::vector<std::uint8_t> rest_of(fuzz::ByteReader& reader) {
  const std::string_view rest = reader.bytes(SIZE_MAX);
  return {rest.begin(), rest.end()};
}

void play_python(fuzz::ByteReader& reader, unsigned minor) {
  std::vector<Change> changes(reader.byte() % 16);
  for (Change& change : changes) {
    change.before_read = reader.byte();
    change.place = static_cast<std::uint16_t>(reader.byte() << 8);
    change.place = static_cast<std::uint16_t>(change.place | reader.byte());
    change.value = reader.byte();
  }
  ChangingMemory memory(rest_of(reader), std::move(changes));
  const auto read = python_stacks(memory, stacks_input::kBegin, 0x030002F0U | minor << 16);
  if (!read) return check_text(read.error().text(), 1000);
  if (read->threads.empty() || read->threads.size() > kMostThreads) found("a wrong number of threads");
  RankLook look{.rank = 1};
  std::size_t frames = 0;
  for (const PythonThread& thread : read->threads) {
    if (thread.frames.size() > kMostFrames) found("too many calls");
    frames += thread.frames.size();
    for (const Frame& frame : thread.frames) {
      check_text(frame.function, kMostNameBytes);
      check_text(frame.file, kMostNameBytes);
      if (frame.line < 0) found("a line below 0");
    }
    look.process.threads.push_back({.frames = thread.frames, .is_cut = thread.is_cut, .is_torn = thread.is_torn});
  }
  if (frames > kMostFramesOfProcess + kMostFrames) found("too many calls of a process");
  const Groups groups = grouped({look});
  if (text_of(groups, 8192).size() > 8192) found("groups are not made to fit");
  if (read_groups(text_of(groups, SIZE_MAX)).groups.size() != groups.groups.size()) found("groups are not read again");
}

void play_text(std::string_view text) {
  StacksDocument document;
  Gathering gathering(4096);
  for (const char* node : {"n", "m", "n"}) gathering.add(read_groups(std::string(text)), node);
  document.all = gathering.take_groups();
  const std::string gathered = page_of(document);
  if (const auto read = read_document(text)) document = *read;
  for (const std::string& line : split(gathered + page_of(document), '\n')) check_text(line, SIZE_MAX);
  const KernelState state = kernel_state(text);
  check_text(state.name, 1000);
  check_text(wait_text('S', text, text), 1000);
  user_of(text);
}

void play(fuzz::ByteReader reader) {
  const std::uint8_t first = reader.byte();
  switch (static_cast<Kind>(first % stacks_input::kKinds)) {
    case Kind::kPython11: return play_python(reader, 11);
    case Kind::kPython12: return play_python(reader, 12);
    case Kind::kPython13: return play_python(reader, 13);
    case Kind::kPython14: return play_python(reader, 14);
    case Kind::kElf: {
      const std::vector<std::uint8_t> bytes = rest_of(reader);
      TextMemory file{bytes};
      python_in(file);
      return;
    }
    case Kind::kMappings: {
      if (python_files(reader.bytes(SIZE_MAX)).size() > 4) found("too many files");
      return;
    }
    case Kind::kLines: {
      const std::uint8_t unit = reader.byte();
      if (line_at(rest_of(reader), 1, unit) < 0) found("a line below 0");
      return;
    }
    case Kind::kText: return play_text(reader.bytes(SIZE_MAX));
  }
}

}  // namespace
}  // namespace elastic

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  elastic::play(elastic::fuzz::ByteReader(data, size));
  return 0;
}
