#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// What readers of Python's pickles have in common: the opcodes (Python's module pickletools), and the bytes behind
// them. What a pickle may hold, and what its opcodes do, is each reader's own matter.
namespace elastic::pickle {

enum Opcode : std::uint8_t {
  kMark = '(',
  kEmptyTuple = ')',
  kStop = '.',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kReduce = 'R',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kProto = 0x80,
  kNewObject = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// A clause about an opcode that a reader does not take: "the opcode GLOBAL, which no dump has, is refused".
std::string why_refused(std::uint8_t byte, std::string_view what);

// The most bytes of a number that readers take.
inline constexpr std::size_t kNumberBytes = 8;

// The bytes of a pickle, from its beginning on.
class Bytes {
 public:
  // They outlive it.
  explicit Bytes(std::string_view all) : all_(all) {}

  std::size_t at() const { return at_; }
  bool is_at_end() const { return at_ == all_.size(); }
  // More was taken than there is.
  bool is_short() const { return is_short_; }

  // The next ones. Where there are fewer none are taken, and is_short() holds from then on.
  std::string_view take_bytes(std::uint64_t count);
  // Those up to the next line end, which is taken, too. Where there is none is_short() holds from then on.
  std::string_view take_line();
  // A number of `count` bytes, at most kNumberBytes, the lowest first; 0 where there are fewer. The second one has a
  // sign.
  std::uint64_t unsigned_number(std::size_t count);
  std::uint64_t signed_number(std::size_t count);
  // The bits of a float, which has its highest byte first.
  std::uint64_t float_bits();

 private:
  std::string_view all_;
  std::size_t at_ = 0;
  bool is_short_ = false;
};

}  // namespace elastic::pickle
