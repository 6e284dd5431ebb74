#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/byte_reader.h"

// The input of the store's fuzzer: events of eight clients, one after another. Each begins with a
// byte, kind * 8 + client, and goes on as its kind below says. Where the input ends in the middle
// of an event, what is missing reads as 0.
//
// Requests and raw bytes join what the client has not sent yet; `cut` says how it is sent now.
namespace elastic::store_events {

// Kinds 0 to 18 are a whole request of this number: cut, then key (one byte, see kKeys), value
// (kValues; 64 to 127: the low four bits are a length, and so many bytes follow), number (kNumbers;
// from 64 on: eight bytes follow), or a list (its low three bits are a count), as the request has
// them. A new connection's VALIDATE goes before the first request by itself; 0 sends one more.
enum Kind : std::uint8_t {
  kRaw = 19,    // cut, count, that many bytes: the start of a connection, or anything else
  kFiller,      // cut, byte, size (one byte; 255: another one, see kFillerSizes)
  kLeave,       // the connection ends
  kPatch,       // place, byte: changes what is not sent yet, such as a length
  kDeliver,     // cut
  kSmallStore,  // size: a bound for what the store holds; only as the first event
};              // any other kind is kRaw

// How what is unsent is sent: 0 all at once, up to 127 in pieces of so many bytes, from 128 on only
// the first `cut` - 128 bytes of it.
inline constexpr std::uint8_t kAtOnce = 0;
inline constexpr std::uint8_t kFirst = 128;
inline constexpr std::uint8_t kHold = kFirst;

// A byte is an index modulo the size; but from kLong on, one for each size, it is a long text.
inline constexpr std::array<std::string_view, 7> kKeys = {
    "/a", "/b", "/c", "/d", "init/", "", std::string_view("/\0\xFF", 3)};
inline constexpr std::array<std::string_view, 18> kValues = {"",
                                                             "0",
                                                             "1",
                                                             "2",
                                                             "x",
                                                             "abc",
                                                             " 12abc",
                                                             "-1",
                                                             "+5",
                                                             "-",
                                                             std::string_view("1\0x", 3),
                                                             "9223372036854775807",
                                                             "-9223372036854775808",
                                                             "9223372036854775808",
                                                             "0x10",
                                                             "+-1",
                                                             "\t\n\v\f\r 7",
                                                             "9223372036854775806"};
inline constexpr std::array<std::int64_t, 9> kNumbers = {0, 1, 2, 3, -1, 4, INT64_MAX, INT64_MIN, INT64_MAX - 1};
inline constexpr std::uint8_t kLong = 0xF0;
inline constexpr std::array<std::size_t, 3> kLongKeys = {300, 8192, 8193};
inline constexpr std::array<std::size_t, 2> kLongValues = {257, 5000};
// Large ones take time, so they take two bytes.
inline constexpr std::array<std::size_t, 5> kFillerSizes = {8 << 10, 64 << 10, 1 << 20, (8 << 20) - 8, 8 << 20};
inline constexpr std::uint8_t kLargeFiller = 255;
// The store's bound in bytes: the usual one, and what each step of kSmallStore's size adds.
inline constexpr std::size_t kUsualStoreBytes = 1 << 30;
inline constexpr std::size_t kStoreBytesPerStep = 40;
inline constexpr std::uint8_t kInline = 64;  // values and numbers
inline constexpr std::uint8_t kInlineValueEnd = 128;

// Writes inputs. The bytes after the cut are the request's arguments in the form above.
class Writer {
 public:
  Writer& request(unsigned client, std::uint8_t number, std::string_view arguments = {}, std::uint8_t cut = kAtOnce) {
    return begin(client, number).byte(cut).bytes(arguments);
  }
  Writer& raw(unsigned client, std::string_view content, std::uint8_t cut = kAtOnce) {
    begin(client, kRaw).byte(cut).byte(static_cast<std::uint8_t>(content.size()));
    return bytes(content);
  }
  Writer& filler(unsigned client, std::uint8_t which, std::uint8_t size_index, std::uint8_t cut = kAtOnce) {
    return begin(client, kFiller).byte(cut).byte(which).byte(kLargeFiller).byte(size_index);
  }
  Writer& patch(unsigned client, std::uint8_t place, std::uint8_t value) {
    return begin(client, kPatch).byte(place).byte(value);
  }
  Writer& deliver(unsigned client, std::uint8_t cut = kAtOnce) { return begin(client, kDeliver).byte(cut); }
  Writer& small_store(std::uint8_t steps) { return begin(0, kSmallStore).byte(steps); }
  Writer& leave(unsigned client) { return begin(client, kLeave); }

  const std::string& input() const { return input_; }

 private:
  Writer& begin(unsigned client, std::uint8_t kind) { return byte(static_cast<std::uint8_t>(kind * 8u + client)); }
  Writer& byte(std::uint8_t value) {
    input_ += static_cast<char>(value);
    return *this;
  }
  Writer& bytes(std::string_view content) {
    input_ += content;
    return *this;
  }

  std::string input_;
};

// Reads them.
class Reader : public fuzz::ByteReader {
 public:
  using ByteReader::ByteReader;

  // To be asked for first.
  std::size_t store_bytes() {
    const bool is_small = next_byte() >> 3 == kSmallStore;
    if (!is_small) return kUsualStoreBytes;
    byte();
    return byte() * kStoreBytesPerStep;
  }
  std::string key() {
    const std::uint8_t which = byte();
    if (is_long(which, kLongKeys)) return std::string(kLongKeys[which - kLong], 'k');
    return std::string(kKeys[which % kKeys.size()]);
  }
  std::string value() {
    const std::uint8_t which = byte();
    if (which >= kInline && which < kInlineValueEnd) return std::string(bytes(which & 15));
    if (is_long(which, kLongValues)) return std::string(kLongValues[which - kLong], 'v');
    return std::string(kValues[which % kValues.size()]);
  }
  std::int64_t number() {
    const std::uint8_t which = byte();
    if (which < kInline) return kNumbers[which % kNumbers.size()];
    std::uint64_t number = 0;
    for (int i = 0; i < 8; ++i) number |= std::uint64_t{byte()} << (8 * i);
    return static_cast<std::int64_t>(number);
  }
  std::size_t list_size() { return byte() & 7; }
  std::size_t filler_size() {
    const std::uint8_t size = byte();
    return size < kLargeFiller ? size : kFillerSizes[byte() % kFillerSizes.size()];
  }

 private:
  template <std::size_t kSize>
  static bool is_long(std::uint8_t which, const std::array<std::size_t, kSize>&) {
    return which >= kLong && which < kLong + kSize;
  }
};

}  // namespace elastic::store_events
