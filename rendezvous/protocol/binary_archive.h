#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "rendezvous/protocol/big_endian.h"
#include "rendezvous/protocol/codec.h"
#include "src/base/fields.h"
#include "src/base/text.h"

// The bytes of messages, by their lists of fields (src/base/fields.h). docs/agent-protocol.md specifies them.
namespace elastic::protocol {

// What a list of fields calls. `Self` has a field(value, bounds) for each type of value.
template <class Self>
class BinaryArchive {
 public:
  void operator()(const char*, auto& value, auto... bounds) { static_cast<Self&>(*this).field(value, bounds...); }
  void if_set(const char* name, auto& value, auto... bounds) { (*this)(name, value, bounds...); }
  void at_end(const char* name, auto& value, auto... bounds) { (*this)(name, value, bounds...); }
  void stamped(const char*, const auto&) {}
};

// Writes the number of bytes after `at` into the four bytes there.
inline void fill_in_size(ByteString& bytes, std::size_t at) {
  const auto size = to_big_endian(static_cast<std::uint32_t>(bytes.size() - at - sizeof(std::uint32_t)));
  std::ranges::copy(size, bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

class BinaryWriter : public BinaryArchive<BinaryWriter> {
 public:
  explicit BinaryWriter(ByteString& out) : out_(out) {}

  template <class T>
  void at_end(const char*, const T& value, auto... bounds) {
    if (value != T{}) field(value, bounds...);
  }

  void field(bool value) { out_.push_back(value ? 1 : 0); }
  template <std::integral T>
  void field(const T& number, auto...) {
    field(to_big_endian(static_cast<std::make_unsigned_t<T>>(number)));
  }
  void field(double number) { field(std::bit_cast<std::uint64_t>(number)); }
  template <class T>
  requires std::is_enum_v<T>
  void field(const T& value) { field(static_cast<std::uint8_t>(value)); }
  template <std::size_t kSize>
  void field(const std::array<std::uint8_t, kSize>& bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  template <class T>
  void field(const std::optional<T>& value, auto... bounds) {
    field(value.has_value());
    if (value) field(*value, bounds...);
  }
  template <class T>
  requires std::is_class_v<T>
  void field(const T& part) {
    const std::size_t start = out_.size();
    field(std::uint32_t{0});
    T::fields(*this, part);
    fill_in_size(out_, start);
  }
  void field(const std::string& text, Bounds bounds) {
    const std::string_view sent = start_of(text, static_cast<std::size_t>(bounds.most));
    field(static_cast<std::uint32_t>(sent.size()));
    out_.insert(out_.end(), sent.begin(), sent.end());
  }
  template <class T>
  void field(const std::vector<T>& items, Bounds bounds) {
    const std::size_t count = std::min(items.size(), static_cast<std::size_t>(bounds.most));
    field(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i) field(items[i]);
  }

 private:
  // The longest start of a text that has at most `limit` bytes and ends with a whole character.
  static std::string_view start_of(std::string_view text, std::size_t limit) {
    if (text.size() <= limit) return text;
    const auto inside = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
    std::size_t end = limit;
    while (end > 0 && limit - end < 3 && inside(end)) --end;
    return text.substr(0, inside(end) ? limit : end);
  }

  ByteString& out_;
};

class BinaryReader : public BinaryArchive<BinaryReader> {
 public:
  // Whether fields of the message itself may be missing at its end. Those of a struct inside it always may.
  enum class Ending : std::uint8_t { kStrict, kMayBeEarly };

  BinaryReader(Bytes bytes, Ending ending) : left_(bytes), depth_(ending == Ending::kStrict ? 1 : 0) {}

  // What is wrong, as a clause; empty if nothing is.
  const std::string& error() const { return error_; }

  template <std::unsigned_integral T>
  void field(T& number, auto...) {
    if (begin_field() && has(sizeof(T))) number = take_number<T>();
  }
  template <std::signed_integral T>
  void field(T& number, auto...) {
    auto bits = static_cast<std::make_unsigned_t<T>>(number);
    field(bits);
    number = static_cast<T>(bits);
  }
  void field(bool& value) {
    std::uint8_t byte = value;
    field(byte);
    if (byte > 1) fail(format("a boolean has the value {}", byte));
    value = byte == 1;
  }
  void field(double& number) {
    auto bits = std::bit_cast<std::uint64_t>(number);
    field(bits);
    number = std::bit_cast<double>(bits);
  }
  template <class T>
  requires std::is_enum_v<T>
  void field(T& value) {
    auto number = static_cast<std::uint8_t>(value);
    field(number);
    if (number >= names_of(value).size()) return fail(format("an enumeration has the value {}", number));
    value = static_cast<T>(number);
  }
  template <std::size_t kSize>
  void field(std::array<std::uint8_t, kSize>& bytes) {
    if (begin_field() && has(kSize)) std::ranges::copy(take_bytes(kSize), bytes.begin());
  }
  template <class T>
  void field(std::optional<T>& value, auto... bounds) {
    if (!begin_field()) return;
    ++depth_;
    bool there = false;
    field(there);
    if (there) field(value.emplace(), bounds...);
    --depth_;
  }
  template <class T>
  requires std::is_class_v<T>
  void field(T& part) {
    std::uint32_t size = 0;
    if (!begin_field() || !has(sizeof size)) return;
    size = take_number<std::uint32_t>();
    if (!has(size)) return;
    // What a later version has added to the struct is passed over, and what an earlier one lacks keeps its value.
    const Bytes after = left_.subspan(size);
    left_ = left_.first(size);
    const int depth = std::exchange(depth_, 0);
    T::fields(*this, part);
    depth_ = depth;
    left_ = after;
  }
  void field(std::string& text, Bounds bounds) {
    std::uint32_t size = 0;
    if (!begin_field() || !take_count(size, bounds.most, "text", "bytes")) return;
    if (!has(size)) return;
    const Bytes bytes = take_bytes(size);
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  template <class T>
  void field(std::vector<T>& items, Bounds bounds) {
    std::uint32_t count = 0;
    if (!begin_field() || !take_count(count, bounds.most, "list", "items")) return;
    ++depth_;
    for (; count > 0 && error_.empty(); --count) field(items.emplace_back());
    --depth_;
  }

 private:
  bool begin_field() const { return error_.empty() && (depth_ > 0 || !left_.empty()); }
  bool has(std::size_t size) {
    if (left_.size() >= size) [[likely]]
      return true;
    fail_cut_off();
    return false;
  }
  Bytes take_bytes(std::size_t size) {
    const Bytes bytes = left_.first(size);
    left_ = left_.subspan(size);
    return bytes;
  }
  template <std::unsigned_integral T>
  T take_number() {
    return from_big_endian<T>(take_bytes(sizeof(T)));
  }
  bool take_count(std::uint32_t& count, std::int64_t limit, std::string_view what, std::string_view unit) {
    if (!has(sizeof count)) return false;
    count = take_number<std::uint32_t>();
    if (count > limit) fail(format("a {} of {} {}; at most {} are allowed", what, count, unit, limit));
    return count <= limit;
  }
  [[gnu::noinline]] void fail_cut_off() { fail("it ends in the middle of a field"); }
  void fail(std::string error) {
    if (error_.empty()) error_ = std::move(error);
  }

  Bytes left_;
  int depth_;  // how many optionals and lists of the present struct enclose the present field
  std::string error_;
};

}  // namespace elastic::protocol
