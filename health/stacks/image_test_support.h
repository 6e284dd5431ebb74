#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "health/stacks/layout.h"
#include "health/stacks/memory.h"

// The memory of a small process, made by hand, for tests: an interpreter with threads that are in functions.
namespace elastic::stacks {

class Image : public Memory {
 public:
  static constexpr std::uint64_t kBegin = 0x10000;

  // `minor`: of Python 3. Its _PyRuntime is at kBegin.
  explicit Image(unsigned minor) : minor_(minor), version_(0x030002F0U | minor << 16) {
    const bool has_table = minor >= 13;
    put_at(place(has_table ? kTableBytes : 48), std::uint64_t{0});
    if (has_table) put_table();
    layout_ = python_at(*this, kBegin, version_).value().layout;
    interpreter_ = place(128);
    put_at(kBegin + layout_.runtime_interpreters, interpreter_);
  }
  std::uint64_t version() const { return version_; }
  const Layout& layout() const { return layout_; }
  std::vector<std::uint8_t>& bytes() { return bytes_; }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }
  bool read(std::uint64_t address, std::span<std::uint8_t> out) override {
    return TextMemory(bytes_, kBegin).read(address, out);
  }

  std::uint64_t place(std::size_t size) {
    const std::uint64_t address = kBegin + bytes_.size();
    bytes_.resize(bytes_.size() + (size + 7) / 8 * 8);
    return address;
  }
  template <class T>
  void put_at(std::uint64_t address, T value) {
    std::memcpy(bytes_.data() + (address - kBegin), &value, sizeof value);
  }
  std::uint64_t ascii(std::string_view text) { return text_object(text, text.size(), layout_.text_ascii, 1, true); }
  // Characters of two bytes.
  std::uint64_t wide(std::u16string_view text) {
    return text_object({reinterpret_cast<const char*>(text.data()), 2 * text.size()}, text.size(), layout_.text_other,
                       2, false);
  }
  std::uint64_t bytes_object(std::string_view data) {
    const std::uint64_t at = place(layout_.bytes_data + data.size());
    put_at(at + layout_.bytes_size, std::uint64_t{data.size()});
    copy(at + layout_.bytes_data, data);
    return at;
  }
  // A function whose n-th code unit is in line `first_line` + n, up to four.
  std::uint64_t code(std::uint64_t name, std::uint64_t file, int first_line) {
    const std::uint64_t lines = bytes_object("\xd0\x01\xd8\x01\xd8\x01\xd8\x01");
    const std::uint64_t at = place(layout_.code_instructions + 16);
    put_at(at + layout_.code_name, name);
    put_at(at + layout_.code_file, file);
    put_at(at + layout_.code_lines, lines);
    put_at(at + layout_.code_first_line, std::int32_t{first_line});
    return at;
  }
  std::uint64_t code(std::string_view name, std::string_view file, int first_line) {
    const std::uint64_t name_object = ascii(name);
    return code(name_object, ascii(file), first_line);
  }
  // A call of the function, at a code unit, called by `previous`.
  std::uint64_t frame(std::uint64_t code, std::uint64_t unit, std::uint64_t previous, std::uint8_t owner = 0) {
    const std::uint64_t at = place(96);
    put_at(at + layout_.frame_code, code | (layout_.has_tagged_code ? 1U : 0U));
    put_at(at + layout_.frame_instruction, code + layout_.code_instructions + 2 * unit);
    put_at(at + layout_.frame_previous, previous);
    put_at(at + layout_.frame_owner, owner);
    return at;
  }
  // A thread, which becomes the first of the interpreter.
  std::uint64_t thread(std::uint64_t native_id, std::uint64_t newest) {
    const std::uint64_t at = place(168);
    put_at(at + layout_.thread_native_id, native_id);
    if (layout_.frame_within) {
      const std::uint64_t within = place(16);
      put_at(within + *layout_.frame_within, newest);
      newest = within;
    }
    put_at(at + layout_.thread_frame, newest);
    put_at(at + layout_.thread_next, first_thread_);
    first_thread_ = at;
    put_at(interpreter_ + layout_.interpreter_threads, at);
    return at;
  }

 private:
  static constexpr std::size_t kTableBytes = 86 * 8;

  void copy(std::uint64_t address, std::string_view data) {
    if (!data.empty()) std::memcpy(bytes_.data() + (address - kBegin), data.data(), data.size());
  }
  std::uint64_t text_object(std::string_view data, std::uint64_t length, std::uint64_t data_offset, std::uint32_t width,
                            bool is_ascii) {
    const std::uint64_t at = place(data_offset + data.size());
    put_at(at + layout_.text_length, length);
    put_at(at + layout_.text_state, width << 2 | 1U << 5 | (is_ascii ? 1U << 6 : 0U));
    copy(at + data_offset, data);
    return at;
  }
  void put_table() {
    copy(kBegin, "xdebugpy");
    const auto at = [this](std::size_t index, std::uint64_t offset) { put_at(kBegin + index * 8, offset); };
    const bool is_13 = minor_ == 13;
    at(1, version_);
    at(5, kTableBytes - 8);  // interpreters_head
    at(8, 8), at(9, 16);     // interpreter: next, threads
    const std::size_t thread = is_13 ? 19 : 22;
    at(thread + 2, 8), at(thread + 4, 16), at(thread + 6, 24);
    const std::size_t frame = is_13 ? 28 : 31;
    at(frame + 1, 8), at(frame + 2, 16), at(frame + 3, 24), at(frame + 5, 32);
    const std::size_t code = is_13 ? 34 : 39;
    at(code + 1, 8), at(code + 2, 16), at(code + 4, 24), at(code + 5, 32), at(code + 9, 40);
    const std::size_t bytes = is_13 ? 64 : 74;
    at(bytes + 1, 16), at(bytes + 2, 32);
    const std::size_t text = is_13 ? 67 : 77;
    at(text + 1, 32), at(text + 2, 16), at(text + 3, 40);
  }

  unsigned minor_;
  std::uint64_t version_;
  std::vector<std::uint8_t> bytes_;
  Layout layout_;
  std::uint64_t interpreter_ = 0, first_thread_ = 0;
};

}  // namespace elastic::stacks
