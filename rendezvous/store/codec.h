#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// PyTorch's TCPStore protocol (torch 2.2 and newer): decodes requests and encodes replies. docs/store-protocol.md
// specifies the bytes.
namespace elastic::store {

using Bytes = std::span<const std::uint8_t>;

// The first byte of a request. PyTorch only appends to this list.
enum class Op : std::uint8_t {
  kValidate,
  kSet,
  kCompareSet,
  kGet,
  kAdd,
  kCheck,
  kWait,
  kGetNumKeys,
  kDeleteKey,
  kAppend,
  kMultiGet,
  kMultiSet,
  kCancelWait,
  kPing,
  kQueuePush,
  kQueuePop,
  kQueueLen,
  kListKeys,
  kBarrier,
};

inline constexpr std::size_t kOps = static_cast<std::size_t>(Op::kBarrier) + 1;
// "compare_set".
std::string_view name_of(Op op);

// One request. Only the fields that its op has are meaningful.
struct Command {
  Op op = Op::kValidate;
  std::string key;
  std::string value;                // SET, APPEND, QUEUE_PUSH; COMPARE_SET: the new value
  std::string expected;             // COMPARE_SET
  std::int64_t number = 0;          // ADD: what to add; BARRIER: world size; PING: the nonce
  std::vector<std::string> keys;    // CHECK, WAIT, MULTI_GET, MULTI_SET
  std::vector<std::string> values;  // MULTI_SET, as many as keys
};

// Why a connection is closed. Each kind is logged once.
struct Refusal {
  enum class Kind : std::uint8_t {
    kHttp,  // the first bytes are those of another protocol
    kTls,
    kSsh,
    kOldTorch,    // torch <= 2.0: no VALIDATE, other op numbers
    kQueryMagic,  // the short-lived form of 2023 with a magic before each request
    kUnknownProtocol,
    kWrongMagic,
    kUnknownOp,
    kSecondValidate,
    kKeyTooLong,
    kValueTooLong,
    kTooManyKeys,
    kNotANumber,   // ADD or BARRIER on a value that is no 64-bit decimal number
    kOutOfRange,   // ADD or BARRIER beyond 64 bits
    kStoreFull,    // the keyspace's bound
    kTransitFull,  // the bound of what all clients have under way
    kNotAdmitted,  // its address is none of those that are admitted
    kSilent,       // it sent no VALIDATE in time
  };
  Kind kind;
  std::string reason;  // a clause without the client's address: "its key has 9000 bytes, ..."
};
inline constexpr std::size_t kRefusalKinds = static_cast<std::size_t>(Refusal::Kind::kSilent) + 1;

// Decodes one connection's bytes, in pieces of any size, into commands. Its time is linear in the number of bytes,
// however small the pieces are. It holds at most one unfinished command.
class Decoder {
 public:
  enum class Step {
    kNeedMore,  // all bytes were consumed, and no command is complete
    kCommand,   // command() is complete; the bytes that are left may have more
    kRefused,   // refusal() says why; the connection must be closed, and next() not called again
  };

  // Consumes bytes from the front of `bytes` up to the end of one command. VALIDATE, which must come first, is consumed
  // here and is no command. A length or count is checked as soon as it has arrived.
  Step next(Bytes& bytes);

  // The command that next() completed, until the next call. The caller may move its strings away, but must not put
  // larger ones in their place.
  Command& command() { return command_; }
  // Frees what a large command() has allocated, for when next() may not be called for long.
  void forget_command();
  const Refusal& refusal() const { return refusal_; }

  // The whole VALIDATE has come.
  bool greeted() const;

  // About how many bytes of memory the unfinished command takes: its keys and values so far, and their strings. A few
  // hundred bytes that every decoder keeps are not counted.
  std::size_t held_bytes() const { return in_command_ ? held_bytes_ : 0; }

 private:
  enum class Field : std::uint8_t { kKey, kExpected, kValue, kNumber, kNonce, kKeys, kPairs };
  static std::span<const Field> fields_of(Op op);

  // Each consumes what it can from `bytes`. False or an empty result: more bytes are needed, or it was refused.
  bool take_command(Bytes& bytes);
  bool take_hello(Bytes& bytes);
  bool begin_command(Bytes& bytes);
  bool take_field(Field field, Bytes& bytes);
  bool take_argument(Bytes& bytes, std::size_t size);
  std::optional<std::uint64_t> take_number(Bytes& bytes, std::size_t size);
  // Consumes a text with its length. Consumes nothing if they have not come whole, or are to be refused.
  bool take_whole_text(Bytes& bytes, std::size_t most, std::string_view& text);
  bool take_string(Bytes& bytes, std::string& text, bool is_key);
  bool take_list(Bytes& bytes, bool with_values);
  bool take_length(Bytes& bytes, bool is_key);
  bool take_text(Bytes& bytes, std::string& text);
  // These always return false.
  bool refuse_op(std::uint8_t op);
  bool refuse_count(std::uint64_t count);
  bool refuse_length(std::uint64_t length, bool is_key);
  bool refuse(Refusal::Kind kind, std::string reason);
  void release();

  Command command_;
  Refusal refusal_{};
  std::span<const Field> fields_;       // of the present command, from the one being read on
  std::uint64_t list_size_ = 0;         // how many strings the list being read has
  std::uint64_t list_done_ = 0;         // how many of them are complete
  std::size_t length_ = 0;              // of the string being read
  std::size_t held_bytes_ = 0;          // see held_bytes()
  std::array<std::uint8_t, 8> part_{};  // the first bytes of a number that comes in pieces
  std::uint8_t part_size_ = 0;
  std::uint8_t hello_size_ = 0;  // how many bytes of VALIDATE and its magic have come
  bool in_command_ = false;
  bool has_list_size_ = false;
  bool has_length_ = false;
  bool refused_ = false;
};

// Append parts of replies to the bytes for one client.
inline void put_byte(std::string& out, std::uint8_t byte) { out.push_back(static_cast<char>(byte)); }
void put_u32(std::string& out, std::uint32_t number);
void put_i64(std::string& out, std::int64_t number);
void put_string(std::string& out, std::string_view text);  // u64 length, then the bytes

// The single-byte replies.
inline constexpr std::uint8_t kReady = 0;
inline constexpr std::uint8_t kNotReady = 1;
inline constexpr std::uint8_t kStopWaiting = 0;
inline constexpr std::uint8_t kWaitCanceled = 1;

}  // namespace elastic::store
