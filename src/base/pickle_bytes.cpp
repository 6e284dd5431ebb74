#include "src/base/pickle_bytes.h"

#include <algorithm>
#include <array>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::pickle {
namespace {

struct OpcodeName {
  std::uint8_t byte;
  std::string_view name;
};

constexpr std::array kNames = std::to_array<OpcodeName>({
    {'(', "MARK"},          {')', "EMPTY_TUPLE"},
    {'.', "STOP"},          {'0', "POP"},
    {'1', "POP_MARK"},      {'2', "DUP"},
    {'B', "BINBYTES"},      {'C', "SHORT_BINBYTES"},
    {'F', "FLOAT"},         {'G', "BINFLOAT"},
    {'I', "INT"},           {'J', "BININT"},
    {'K', "BININT1"},       {'L', "LONG"},
    {'M', "BININT2"},       {'N', "NONE"},
    {'P', "PERSID"},        {'Q', "BINPERSID"},
    {'R', "REDUCE"},        {'S', "STRING"},
    {'T', "BINSTRING"},     {'U', "SHORT_BINSTRING"},
    {'V', "UNICODE"},       {'X', "BINUNICODE"},
    {']', "EMPTY_LIST"},    {'a', "APPEND"},
    {'b', "BUILD"},         {'c', "GLOBAL"},
    {'d', "DICT"},          {'e', "APPENDS"},
    {'g', "GET"},           {'h', "BINGET"},
    {'i', "INST"},          {'j', "LONG_BINGET"},
    {'l', "LIST"},          {'o', "OBJ"},
    {'p', "PUT"},           {'q', "BINPUT"},
    {'r', "LONG_BINPUT"},   {'s', "SETITEM"},
    {'t', "TUPLE"},         {'u', "SETITEMS"},
    {'}', "EMPTY_DICT"},    {0x80, "PROTO"},
    {0x81, "NEWOBJ"},       {0x82, "EXT1"},
    {0x83, "EXT2"},         {0x84, "EXT4"},
    {0x85, "TUPLE1"},       {0x86, "TUPLE2"},
    {0x87, "TUPLE3"},       {0x88, "NEWTRUE"},
    {0x89, "NEWFALSE"},     {0x8a, "LONG1"},
    {0x8b, "LONG4"},        {0x8c, "SHORT_BINUNICODE"},
    {0x8d, "BINUNICODE8"},  {0x8e, "BINBYTES8"},
    {0x8f, "EMPTY_SET"},    {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},    {0x92, "NEWOBJ_EX"},
    {0x93, "STACK_GLOBAL"}, {0x94, "MEMOIZE"},
    {0x95, "FRAME"},        {0x96, "BYTEARRAY8"},
    {0x97, "NEXT_BUFFER"},  {0x98, "READONLY_BUFFER"},
});

}  // namespace

std::string why_refused(std::uint8_t byte, std::string_view what) {
  const auto* known = std::ranges::find(kNames, byte, &OpcodeName::byte);
  if (known == kNames.end()) return format("the byte 0x{:02x} is no opcode", byte);
  return format("the opcode {}, which no {} has, is refused", known->name, what);
}

std::string_view Bytes::take_bytes(std::uint64_t count) {
  if (all_.size() - at_ < count) {
    is_short_ = true;
    return {};
  }
  const std::string_view taken = all_.substr(at_, static_cast<std::size_t>(count));
  at_ += taken.size();
  return taken;
}

std::string_view Bytes::take_line() {
  const std::size_t end = all_.find('\n', at_);
  if (end == std::string_view::npos) {
    is_short_ = true;
    return {};
  }
  const std::string_view line = all_.substr(at_, end - at_);
  at_ = end + 1;
  return line;
}

std::uint64_t Bytes::unsigned_number(std::size_t count) {
  ELASTIC_CHECK(count <= kNumberBytes);
  std::uint64_t value = 0;
  const std::string_view taken = take_bytes(count);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    value |= std::uint64_t{static_cast<std::uint8_t>(taken[i])} << (8 * i);
  }
  return value;
}

std::uint64_t Bytes::signed_number(std::size_t count) {
  const std::uint64_t value = unsigned_number(count);
  if (count == 0 || count == kNumberBytes) return value;
  const std::uint64_t sign = std::uint64_t{1} << (8 * count - 1);
  return (value ^ sign) - sign;
}

std::uint64_t Bytes::float_bits() {
  std::uint64_t bits = 0;
  for (const char byte : take_bytes(kNumberBytes)) bits = bits << 8 | static_cast<std::uint8_t>(byte);
  return bits;
}

}  // namespace elastic::pickle
