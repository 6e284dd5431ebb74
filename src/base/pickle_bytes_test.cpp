#include "src/base/pickle_bytes.h"

#include <doctest/doctest.h>

#include <bit>

using namespace elastic;

TEST_CASE(
    "numbers of a pickle have their lowest byte first, and a sign where they have one; floats are the other way") {
  CHECK(pickle::Bytes("\x01\x02").unsigned_number(2) == 0x0201);
  CHECK(pickle::Bytes("\xff").unsigned_number(1) == 255);
  CHECK(static_cast<std::int64_t>(pickle::Bytes("\xff").signed_number(1)) == -1);
  CHECK(static_cast<std::int64_t>(pickle::Bytes("\x7f").signed_number(1)) == 127);
  CHECK(static_cast<std::int64_t>(pickle::Bytes("\xfe\xff\xff\xff\xff\xff\xff\xff").signed_number(8)) == -2);
  CHECK(pickle::Bytes("").signed_number(0) == 0);
  CHECK(std::bit_cast<double>(pickle::Bytes({"\x3f\xf8\0\0\0\0\0\0", 8}).float_bits()) == 1.5);
}

TEST_CASE("bytes of a pickle that are not there are not taken, which is known from then on") {
  pickle::Bytes bytes("ab\nc");
  CHECK(bytes.take_line() == "ab");
  CHECK(bytes.at() == 3);
  CHECK(!bytes.is_short());
  CHECK(bytes.take_bytes(2).empty());
  CHECK(bytes.is_short());
  CHECK(bytes.at() == 3);
  CHECK(bytes.take_bytes(1) == "c");
  CHECK(bytes.is_at_end());
  CHECK(bytes.take_line().empty());
  CHECK(pickle::Bytes("abc").take_bytes(~std::uint64_t{0}).empty());
}

TEST_CASE("opcodes have the names that Python gives them") {
  const auto is_named = [](std::uint8_t byte, const std::string& name) {
    return pickle::why_refused(byte, "dump") == "the opcode " + name + ", which no dump has, is refused";
  };
  CHECK(is_named('c', "GLOBAL"));
  CHECK(is_named(pickle::kFrame, "FRAME"));
  CHECK(is_named(0x98, "READONLY_BUFFER"));
  CHECK(is_named('R', "REDUCE"));
  CHECK(pickle::why_refused('?', "dump") == "the byte 0x3f is no opcode");
}
