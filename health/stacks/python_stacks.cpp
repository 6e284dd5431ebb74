#include "health/stacks/python_stacks.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "health/stacks/layout.h"
#include "src/base/text.h"

namespace elastic::stacks {
namespace {

// Bytes that were no UTF-8 stand in Python's paths as these (os.fsdecode).
constexpr std::uint32_t kFirstEscape = 0xDC80;
constexpr std::uint32_t kLastEscape = 0xDCFF;

void append_utf8(std::string& out, std::uint32_t point) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  const bool is_surrogate = point >= 0xD800 && point < 0xE000;
  if (point >= kFirstEscape && point <= kLastEscape) return put(point & 0xFF);
  if (is_surrogate || point > 0x10FFFF) point = 0xFFFD;
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xC0 | point >> 6);
  } else {
    if (point < 0x10000) {
      put(0xE0 | point >> 12);
    } else {
      put(0xF0 | point >> 18);
      put(0x80 | (point >> 12 & 0x3F));
    }
    put(0x80 | (point >> 6 & 0x3F));
  }
  put(0x80 | (point & 0x3F));
}

std::uint32_t point_at(std::span<const std::uint8_t> data, std::size_t index, std::size_t width) {
  if (width == 1) return data[index];
  if (width == 2) return number_in<std::uint16_t>(data, index * width);
  return number_in<std::uint32_t>(data, index * width);
}

// Which end of a text that is too long is kept.
enum class Kept : unsigned char { kBegin, kEnd };

// A str of CPython as UTF-8 that is fit for a screen, at most about `most` characters of it; "..." stands for the rest.
// Empty where it cannot be read, or is none.
std::string python_text(Memory& memory, const Layout& layout, std::uint64_t address, std::size_t most, Kept kept) {
  if (!may_be_object(address)) return {};
  const auto length = number_at<std::uint64_t>(memory, address + layout.text_length);
  const auto state = number_at<std::uint32_t>(memory, address + layout.text_state);
  constexpr std::uint64_t kMostLength = 1 << 20;  // a longer one is none that names something
  if (!length || !state || *length > kMostLength) return {};
  const std::size_t width = *state >> 2 & 7;
  const bool is_compact = (*state >> 5 & 1) != 0;
  const bool is_ascii = (*state >> 6 & 1) != 0;
  if (!is_compact || (width != 1 && width != 2 && width != 4)) return {};
  const std::size_t count = *length < most ? static_cast<std::size_t>(*length) : most;
  const std::uint64_t skipped = kept == Kept::kEnd ? *length - count : 0;
  std::vector<std::uint8_t> data(count * width);
  const std::uint64_t begin = address + (is_ascii ? layout.text_ascii : layout.text_other);
  if (!memory.read(begin + skipped * width, data)) return {};
  std::string text;
  for (std::size_t i = 0; i < count; ++i) append_utf8(text, point_at(data, i, width));
  // Each character is at most four bytes, and a byte becomes at most four.
  std::string shown = printable(text, most * 16);
  if (count == *length) return shown;
  return kept == Kept::kEnd ? "..." + shown : shown + "...";
}

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

constexpr int kMostLine = 1 << 30;

// Reads the numbers of one entry: six bits a byte, the lowest first, and another byte follows where bit 6 is set.
class Numbers {
 public:
  explicit Numbers(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  // Its lowest bit is the sign. Nothing where the table ends within it, or it has more than 32 bits.
  std::optional<std::int64_t> signed_number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift <= 30; shift += 6) {
      if (bytes_.empty()) return {};
      const std::uint8_t byte = bytes_.front();
      bytes_ = bytes_.subspan(1);
      value |= std::uint64_t{byte & 0x3FU} << shift;
      if ((byte & 0x40) != 0) continue;
      const auto size = static_cast<std::int64_t>(value >> 1);
      return (value & 1) != 0 ? -size : size;
    }
    return {};
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

// By how much the line of an entry differs from that of the one before; nothing where the table is damaged. `kind`:
// what the first byte of the entry says, `rest` what is behind it.
std::optional<std::int64_t> line_change(unsigned kind, std::span<const std::uint8_t> rest) {
  constexpr unsigned kOneLine0 = 10;
  constexpr unsigned kOneLine2 = 12;
  constexpr unsigned kNoColumns = 13;
  constexpr unsigned kLong = 14;
  if (kind >= kOneLine0 && kind <= kOneLine2) return kind - kOneLine0;
  if (kind == kNoColumns || kind == kLong) return Numbers(rest).signed_number();
  return 0;
}

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

int line_at(std::span<const std::uint8_t> table, int first_line, std::uint64_t unit) {
  constexpr unsigned kNone = 15;
  std::int64_t line = first_line;
  std::uint64_t end = 0;
  while (!table.empty()) {
    const std::uint8_t first = table.front();
    if ((first & 0x80) == 0) return 0;
    table = table.subspan(1);
    const unsigned kind = (first >> 3) & 15U;
    const auto change = line_change(kind, table);
    if (!change) return 0;
    line += *change;
    if (line < 0 || line > kMostLine) return 0;
    end += (first & 7U) + 1;
    if (unit < end) return kind == kNone ? 0 : static_cast<int>(line);
    // The first byte of an entry is the only one with bit 7.
    while (!table.empty() && (table.front() & 0x80) == 0) table = table.subspan(1);
  }
  return 0;
}

}  // namespace elastic::stacks
