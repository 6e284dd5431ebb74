#include "health/stacks/python_stacks.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "health/stacks/layout.h"
#include "health/stacks/location_table.h"
#include "health/stacks/python_text.h"
#include "src/base/text.h"

namespace elastic::stacks {
namespace {

constexpr int kTries = 3;
constexpr std::size_t kMostInterpreters = 16;
// Functions that are remembered, and the bytes of their tables.
constexpr std::size_t kMostCodes = 2048;
constexpr std::size_t kMostTables = 8 * 1024 * 1024;
constexpr std::size_t kFileCharacters = 256;
constexpr std::size_t kNameCharacters = 128;

// What does not change of a function.
struct Code {
  Frame frame;  // without its line
  int first_line = 0;
  std::uint64_t instructions = 0;
  std::vector<std::uint8_t> lines;
};

class Reader {
 public:
  Reader(Memory& memory, Python python, std::uint64_t runtime)
      : memory_(memory), python_(std::move(python)), layout_(python_.layout), runtime_(runtime) {}

  PythonStacks read() {
    PythonStacks found{.version = python_.version};
    std::set<std::uint64_t> seen;  // interpreters and threads: a list may lead back into itself
    std::uint64_t interpreter = pointer(runtime_ + layout_.runtime_interpreters);
    for (std::size_t i = 0; i < kMostInterpreters && is_new(interpreter, seen); ++i) {
      read_threads(interpreter, seen, found);
      interpreter = pointer(interpreter + layout_.interpreter_next);
    }
    return found;
  }

 private:
  // 0 where it cannot be read.
  std::uint64_t pointer(std::uint64_t address) { return number_at<std::uint64_t>(memory_, address).value_or(0); }

  static bool is_new(std::uint64_t address, std::set<std::uint64_t>& seen) {
    return may_be_object(address) && seen.insert(address).second;
  }

  void read_threads(std::uint64_t interpreter, std::set<std::uint64_t>& seen, PythonStacks& found) {
    std::uint64_t thread = pointer(interpreter + layout_.interpreter_threads);
    while (is_new(thread, seen)) {
      if (found.threads.size() == kMostThreads || frames_ >= kMostFramesOfProcess) {
        found.is_cut = true;
        return;
      }
      found.threads.push_back(read_thread(thread));
      frames_ += found.threads.back().frames.size();
      thread = pointer(thread + layout_.thread_next);
    }
  }

  PythonThread read_thread(std::uint64_t thread) {
    PythonThread best;
    for (int i = 0; i < kTries; ++i) {
      PythonThread now = try_thread(thread);
      const bool is_whole = !now.is_torn;
      if (i == 0 || is_whole || now.frames.size() >= best.frames.size()) best = std::move(now);
      if (is_whole) break;
    }
    best.native_id = number_at<std::uint64_t>(memory_, thread + layout_.thread_native_id).value_or(0);
    return best;
  }

  std::uint64_t newest_frame(std::uint64_t thread) {
    const std::uint64_t frame = pointer(thread + layout_.thread_frame);
    if (!layout_.frame_within) return frame;
    return may_be_object(frame) ? pointer(frame + *layout_.frame_within) : 0;
  }

  PythonThread try_thread(std::uint64_t thread) {
    PythonThread result;
    const std::uint64_t newest = newest_frame(thread);
    std::uint64_t frame = newest;
    // Foreign frames count as well, so that a list of them alone ends.
    for (std::size_t i = 0; frame != 0 && i < 2 * kMostFrames; ++i) {
      if (result.frames.size() == kMostFrames) break;
      if (!may_be_object(frame) || !read_frame(frame, result)) {
        result.is_torn = true;
        return result;
      }
    }
    result.is_cut = frame != 0;
    result.is_torn = newest_frame(thread) != newest;
    return result;
  }

  // Adds the frame to the result, and goes on to the one that called it. Returns false if it is none.
  bool read_frame(std::uint64_t& frame, PythonThread& result) {
    std::array<std::uint8_t, 96> bytes{};
    const bool is_whole = layout_.frame_previous + 8 <= bytes.size() && layout_.frame_code + 8 <= bytes.size() &&
                          layout_.frame_instruction + 8 <= bytes.size() && layout_.frame_owner < bytes.size();
    if (!is_whole || !memory_.read(frame, bytes)) return false;
    const auto owner = number_in<std::uint8_t>(bytes, layout_.frame_owner);
    auto code = number_in<std::uint64_t>(bytes, layout_.frame_code);
    const auto instruction = number_in<std::uint64_t>(bytes, layout_.frame_instruction);
    frame = number_in<std::uint64_t>(bytes, layout_.frame_previous);
    if (owner >= layout_.first_foreign_owner) return true;
    if (layout_.has_tagged_code) code &= ~std::uint64_t{3};
    const Code* known = code_at(code);
    if (known == nullptr) return false;
    result.frames.push_back(known->frame);
    result.frames.back().line = line_of(*known, instruction);
    return true;
  }

  static int line_of(const Code& code, std::uint64_t instruction) {
    // A call that has not begun is at its function's first line.
    if (instruction < code.instructions) return code.first_line;
    return line_at(code.lines, code.first_line, (instruction - code.instructions) / 2);
  }

  // Null where there is none.
  const Code* code_at(std::uint64_t address) {
    const auto known = codes_.find(address);
    if (known != codes_.end()) return &known->second;
    if (!may_be_object(address)) return nullptr;
    Code code;
    code.frame.function =
        python_text(memory_, layout_, pointer(address + layout_.code_name), kNameCharacters, Kept::kBegin);
    code.frame.file = python_text(memory_, layout_, pointer(address + layout_.code_file), kFileCharacters, Kept::kEnd);
    if (code.frame.function.empty() || code.frame.file.empty()) return nullptr;
    code.first_line = number_at<std::int32_t>(memory_, address + layout_.code_first_line).value_or(0);
    code.instructions = address + layout_.code_instructions;
    read_lines(pointer(address + layout_.code_lines), code.lines);
    if (codes_.size() == kMostCodes || tables_ > kMostTables) {
      codes_.clear();
      tables_ = 0;
    }
    tables_ += code.lines.size();
    return &codes_.emplace(address, std::move(code)).first->second;
  }

  void read_lines(std::uint64_t table, std::vector<std::uint8_t>& lines) {
    if (!may_be_object(table)) return;
    const std::uint64_t size = pointer(table + layout_.bytes_size);
    if (size == 0 || size > kMostTableBytes) return;
    lines.resize(size);
    if (!memory_.read(table + layout_.bytes_data, lines)) lines.clear();
  }

  Memory& memory_;
  const Python python_;
  const Layout& layout_;
  const std::uint64_t runtime_;
  std::map<std::uint64_t, Code> codes_;
  std::size_t tables_ = 0;  // bytes
  std::size_t frames_ = 0;
};

}  // namespace

Result<PythonStacks> python_stacks(Memory& memory, std::uint64_t runtime, std::optional<std::uint64_t> version) {
  auto python = python_at(memory, runtime, version);
  if (!python) return std::unexpected(std::move(python.error()));
  PythonStacks best;
  for (int i = 0; i < kTries; ++i) {
    PythonStacks now = Reader(memory, *python, runtime).read();
    const bool is_whole = std::ranges::none_of(now.threads, &PythonThread::is_torn);
    if (i == 0 || now.threads.size() > best.threads.size()) best = std::move(now);
    if (!best.threads.empty() || is_whole) break;
  }
  if (best.threads.empty()) {
    return fail("Python's stacks cannot be read", format("Python {} has no thread yet, or none any more", best.version),
                "");
  }
  return best;
}

}  // namespace elastic::stacks
