#include "health/stacks/layout.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "src/base/text.h"

namespace elastic::stacks {
namespace {

constexpr std::string_view kCookie = "xdebugpy";
// No structure of CPython has so many bytes.
constexpr std::uint64_t kMostOffset = 1 << 20;

constexpr Layout k311 = {
    .runtime_interpreters = 40,
    .interpreter_next = 0,
    .interpreter_threads = 16,
    .thread_next = 8,
    .thread_native_id = 160,
    .thread_frame = 56,
    .frame_within = 8,
    .frame_previous = 48,
    .frame_code = 32,
    .frame_instruction = 56,
    .frame_owner = 69,
    .code_file = 112,
    .code_name = 120,
    .code_lines = 136,
    .code_first_line = 72,
    .code_instructions = 184,
    .bytes_size = 16,
    .bytes_data = 32,
    .text_length = 16,
    .text_state = 32,
    .text_ascii = 48,
    .text_other = 72,
};

constexpr Layout k312 = [] {
  Layout layout = k311;
  layout.interpreter_threads = 72;
  layout.thread_native_id = 144;
  layout.frame_within = 0;
  layout.frame_previous = 8;
  layout.frame_code = 0;
  layout.frame_owner = 70;
  layout.code_first_line = 68;
  layout.code_instructions = 192;
  layout.text_ascii = 40;
  layout.text_other = 56;
  return layout;
}();

// _Py_DebugOffsets, group by group, in numbers of eight bytes behind cookie, version and free_threaded. Each group
// begins with the size of its structure.
struct Table {
  std::size_t interpreter, thread, frame, code, bytes, text, end;
};
constexpr std::size_t kRuntime = 3;
constexpr Table k313 = {.interpreter = 6, .thread = 19, .frame = 28, .code = 34, .bytes = 64, .text = 67, .end = 71};
constexpr Table k314 = {.interpreter = 6, .thread = 22, .frame = 31, .code = 39, .bytes = 74, .text = 77, .end = 81};

// The offsets within a group that both versions have alike.
constexpr std::size_t kNext = 2;            // of interpreter and thread
constexpr std::size_t kThreads = 3;         // of interpreter
constexpr std::size_t kCurrentFrame = 4;    // of thread
constexpr std::size_t kNativeId = 6;        // of thread
constexpr std::size_t kCodeAdaptive = 9;    // of code
constexpr std::size_t kHeadOfRuntime = 2;   // interpreters_head
constexpr std::uint64_t kBeyondAscii = 16;  // utf8_length and utf8 of PyCompactUnicodeObject

std::string version_text(std::uint64_t version) {
  return format("{}.{}.{}", (version >> 24) & 255, (version >> 16) & 255, (version >> 8) & 255);
}

std::unexpected<Error> refuse(std::string reason) {
  return fail("Python's stacks cannot be read", std::move(reason), "");
}

Result<Layout> read_table(Memory& memory, std::uint64_t runtime, const Table& table) {
  std::array<std::uint8_t, k314.end * 8> bytes{};
  const std::span<std::uint8_t> used(bytes.data(), table.end * 8);
  if (!memory.read(runtime, used)) return refuse("its memory cannot be read");
  bool is_sound = true;
  const auto at = [&](std::size_t group, std::size_t index) {
    const auto offset = number_in<std::uint64_t>(used, (group + index) * 8);
    is_sound = is_sound && offset < kMostOffset;
    return offset;
  };
  Layout layout{
      .runtime_interpreters = at(kRuntime, kHeadOfRuntime),
      .interpreter_next = at(table.interpreter, kNext),
      .interpreter_threads = at(table.interpreter, kThreads),
      .thread_next = at(table.thread, kNext),
      .thread_native_id = at(table.thread, kNativeId),
      .thread_frame = at(table.thread, kCurrentFrame),
      .frame_previous = at(table.frame, 1),
      .frame_code = at(table.frame, 2),
      .frame_instruction = at(table.frame, 3),
      .frame_owner = at(table.frame, 5),
      .code_file = at(table.code, 1),
      .code_name = at(table.code, 2),
      .code_lines = at(table.code, 4),
      .code_first_line = at(table.code, 5),
      .code_instructions = at(table.code, kCodeAdaptive),
      .bytes_size = at(table.bytes, 1),
      .bytes_data = at(table.bytes, 2),
      .text_length = at(table.text, 2),
      .text_state = at(table.text, 1),
      .text_ascii = at(table.text, 3),
      .text_other = at(table.text, 3) + kBeyondAscii,
  };
  if (!is_sound) return refuse("its table of offsets is damaged");
  return layout;
}

}  // namespace

Result<Python> python_at(Memory& memory, std::uint64_t runtime, std::optional<std::uint64_t> version) {
  std::array<std::uint8_t, 24> head{};
  if (!memory.read(runtime, head)) return refuse("its memory cannot be read");
  const bool has_table = std::memcmp(head.data(), kCookie.data(), kCookie.size()) == 0;
  if (has_table) version = number_in<std::uint64_t>(head, 8);
  if (!version) return refuse("the version of Python is not known");
  const std::string text = version_text(*version);
  const std::uint64_t minor = *version >> 16;
  if (!has_table && minor == 0x030B) return Python{text, k311};
  if (!has_table && minor == 0x030C) return Python{text, k312};
  if (!has_table || (minor != 0x030D && minor != 0x030E)) {
    return refuse(format("it is Python {}; 3.11 to 3.14 are known", text));
  }
  if (number_in<std::uint64_t>(head, 16) != 0) {
    return refuse(format("it is Python {} without the GIL, which is not known", text));
  }
  auto layout = read_table(memory, runtime, minor == 0x030D ? k313 : k314);
  if (!layout) return std::unexpected(std::move(layout.error()));
  layout->has_tagged_code = minor == 0x030E;
  return Python{text, *layout};
}

}  // namespace elastic::stacks
