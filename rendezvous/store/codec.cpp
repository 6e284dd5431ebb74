#include "rendezvous/store/codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "rendezvous/store/limits.h"
#include "src/base/strangers.h"
#include "src/base/text.h"

namespace elastic::store {
namespace {

// The protocol has the byte order of the sending host, and all hosts that train are little-endian.
static_assert(std::endian::native == std::endian::little);

// VALIDATE and its magic.
constexpr std::array<std::uint8_t, 5> kHello = {0x00, 0xCE, 0xF7, 0x85, 0x3C};

// The memory of a command of at most so many bytes, with the strings of its lists, is kept for the connection's next
// command. That of one text, at most twice as much, may move into the keyspace.
constexpr std::size_t kKeptBytes = 128;
// How many elements are reserved for a list before they have come.
constexpr std::uint64_t kFirstListRoom = 1024;
std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::size_t most_bytes(bool is_key) { return is_key ? limits::kStoreKeyBytes : limits::kStorePayloadBytes; }

// Before VALIDATE existed a request was an op from 0 to 12 and the length of a key. A first byte of 0 is judged only
// when the whole length has come: it may be VALIDATE with a wrong magic.
bool may_be_old_torch(std::string_view seen) {
  const auto op = static_cast<unsigned char>(seen[0]);
  if (op > 12 || (op == 0 && seen.size() < 9)) return false;
  std::uint64_t length = 0;
  std::memcpy(&length, seen.data() + 1, std::min<std::size_t>(8, seen.size() - 1));
  return length <= limits::kStoreKeyBytes;
}

Refusal::Kind kind_of(Stranger stranger) {
  switch (stranger) {
    case Stranger::kHttp:
    case Stranger::kHttpAnswer:
    case Stranger::kHttp2: return Refusal::Kind::kHttp;
    case Stranger::kTls: return Refusal::Kind::kTls;
    case Stranger::kSsh: return Refusal::Kind::kSsh;
    case Stranger::kTcpStore:  // cannot occur here: that is the right protocol
    case Stranger::kRedis: break;
  }
  return Refusal::Kind::kUnknownProtocol;
}

Refusal stranger_of(std::string_view seen) {
  using Kind = Refusal::Kind;
  constexpr std::string_view kMagic = "\xCE\xF7\x85\x3C";
  if (const auto stranger = recognised(seen)) {
    return {kind_of(*stranger), format("it speaks {}, not PyTorch's TCPStore protocol", name_of(*stranger))};
  }
  if (seen.starts_with(kMagic) || kMagic.starts_with(seen)) {
    return {Kind::kQueryMagic, "it speaks a TCPStore protocol of 2023 that no release kept; use torch 2.2 or newer"};
  }
  if (may_be_old_torch(seen)) {
    return {Kind::kOldTorch, "it speaks the TCPStore protocol of torch 2.1 or older; use torch 2.2 or newer"};
  }
  const std::string quoted = first_bytes_text(seen);
  if (static_cast<unsigned char>(seen[0]) == kHello[0]) {
    return {Kind::kWrongMagic, format("its VALIDATE has a wrong magic number ({})", quoted)};
  }
  return {Kind::kUnknownProtocol, format("it does not speak PyTorch's TCPStore protocol ({})", quoted)};
}

}  // namespace

std::string_view name_of(Op op) {
  constexpr std::array<std::string_view, kOps> kNames = {
      "validate",     "set",        "compare_set", "get",       "add",       "check",       "wait",
      "get_num_keys", "delete_key", "append",      "multi_get", "multi_set", "cancel_wait", "ping",
      "queue_push",   "queue_pop",  "queue_len",   "list_keys", "barrier"};
  return kNames[static_cast<std::size_t>(op)];
}

std::span<const Decoder::Field> Decoder::fields_of(Op op) {
  static constexpr Field kKeyOnly[] = {Field::kKey};
  static constexpr Field kKeyValue[] = {Field::kKey, Field::kValue};
  static constexpr Field kKeyNumber[] = {Field::kKey, Field::kNumber};
  static constexpr Field kCompare[] = {Field::kKey, Field::kExpected, Field::kValue};
  static constexpr Field kKeyList[] = {Field::kKeys};
  static constexpr Field kPairList[] = {Field::kPairs};
  static constexpr Field kNonceOnly[] = {Field::kNonce};
  switch (op) {
    case Op::kGet:
    case Op::kDeleteKey:
    case Op::kQueuePop:
    case Op::kQueueLen: return kKeyOnly;
    case Op::kSet:
    case Op::kAppend:
    case Op::kQueuePush: return kKeyValue;
    case Op::kAdd:
    case Op::kBarrier: return kKeyNumber;
    case Op::kCompareSet: return kCompare;
    case Op::kCheck:
    case Op::kWait:
    case Op::kMultiGet: return kKeyList;
    case Op::kMultiSet: return kPairList;
    case Op::kPing: return kNonceOnly;
    case Op::kValidate:
    case Op::kGetNumKeys:
    case Op::kCancelWait:
    case Op::kListKeys: break;
  }
  return {};
}

Decoder::Step Decoder::next(Bytes& bytes) {
  if (!take_command(bytes)) return refused_ ? Step::kRefused : Step::kNeedMore;
  in_command_ = false;
  return Step::kCommand;
}

bool Decoder::take_command(Bytes& bytes) {
  if (refused_) return false;
  if (!greeted() && !take_hello(bytes)) return false;
  if (!in_command_ && !begin_command(bytes)) return false;
  for (; !fields_.empty(); fields_ = fields_.subspan(1)) {
    if (!take_field(fields_.front(), bytes)) return false;
  }
  return true;
}

bool Decoder::greeted() const { return hello_size_ == kHello.size(); }

bool Decoder::take_hello(Bytes& bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && hello_size_ < kHello.size()) {
    if (bytes[taken] != kHello[hello_size_]) {
      // Bytes of earlier reads were those of kHello, so they need not be kept.
      std::string seen(as_text(Bytes(kHello).first(hello_size_ - taken)));
      seen += as_text(bytes);
      refusal_ = stranger_of(seen);
      refused_ = true;
      return false;
    }
    ++taken;
    ++hello_size_;
  }
  bytes = bytes.subspan(taken);
  return greeted();
}

// The memory of large commands would add up over many idle connections.
void Decoder::forget_command() {
  if (!in_command_ && held_bytes_ > kKeptBytes) release();
}

bool Decoder::begin_command(Bytes& bytes) {
  forget_command();
  if (bytes.empty()) return false;
  const std::uint8_t op = bytes[0];
  bytes = bytes.subspan(1);
  if (op > static_cast<std::uint8_t>(Op::kBarrier) || Op{op} == Op::kValidate) return refuse_op(op);
  command_.op = Op{op};
  fields_ = fields_of(command_.op);
  held_bytes_ = 0;
  in_command_ = true;
  return true;
}

bool Decoder::take_field(Field field, Bytes& bytes) {
  switch (field) {
    case Field::kKey: return take_string(bytes, command_.key, true);
    case Field::kExpected: return take_string(bytes, command_.expected, false);
    case Field::kValue: return take_string(bytes, command_.value, false);
    case Field::kKeys: return take_list(bytes, false);
    case Field::kPairs: return take_list(bytes, true);
    case Field::kNumber: return take_argument(bytes, 8);
    case Field::kNonce: return take_argument(bytes, 4);
  }
  return false;
}

bool Decoder::take_argument(Bytes& bytes, std::size_t size) {
  const auto number = take_number(bytes, size);
  if (!number) return false;
  command_.number = static_cast<std::int64_t>(*number);
  return true;
}

std::optional<std::uint64_t> Decoder::take_number(Bytes& bytes, std::size_t size) {
  std::uint64_t number = 0;
  if (part_size_ == 0 && size == sizeof number && bytes.size() >= size) {  // one load
    std::memcpy(&number, bytes.data(), sizeof number);
    bytes = bytes.subspan(sizeof number);
    return number;
  }
  const std::size_t taken = std::min(size - part_size_, bytes.size());
  std::copy_n(bytes.begin(), taken, part_.begin() + part_size_);
  part_size_ = static_cast<std::uint8_t>(part_size_ + taken);
  bytes = bytes.subspan(taken);
  if (part_size_ < size) return {};
  std::memcpy(&number, part_.data(), size);
  part_size_ = 0;
  return number;
}

// Most texts come whole, and take this short path.
bool Decoder::take_whole_text(Bytes& bytes, std::size_t most, std::string_view& text) {
  std::uint64_t length = 0;
  if (has_length_ || part_size_ > 0 || bytes.size() < sizeof length) return false;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > most || length > bytes.size() - sizeof length) return false;
  held_bytes_ += length;
  text = as_text(bytes.subspan(sizeof length, length));
  bytes = bytes.subspan(sizeof length + length);
  return true;
}

bool Decoder::take_string(Bytes& bytes, std::string& text, bool is_key) {
  if (std::string_view whole; take_whole_text(bytes, most_bytes(is_key), whole)) {
    text = whole;
    return true;
  }
  if (!has_length_) {
    if (!take_length(bytes, is_key)) return false;
    text.clear();
  }
  return take_text(bytes, text);
}

bool Decoder::take_list(Bytes& bytes, bool with_values) {
  if (!has_list_size_) {
    const auto count = take_number(bytes, 8);
    if (!count) return false;
    if (*count > limits::kStoreKeysPerCommand) return refuse_count(*count);
    has_list_size_ = true;
    list_size_ = with_values ? 2 * *count : *count;
    list_done_ = 0;
    command_.keys.clear();
    command_.values.clear();
    command_.keys.reserve(std::min(*count, kFirstListRoom));
  }
  for (; list_done_ < list_size_; ++list_done_) {
    const bool is_key = !with_values || list_done_ % 2 == 0;
    auto& list = is_key ? command_.keys : command_.values;
    if (std::string_view whole; take_whole_text(bytes, most_bytes(is_key), whole)) {
      list.emplace_back(whole);
      held_bytes_ += sizeof(std::string);
      continue;
    }
    if (!has_length_) {
      if (!take_length(bytes, is_key)) return false;
      list.emplace_back();
      held_bytes_ += sizeof(std::string);
    }
    if (!take_text(bytes, list.back())) return false;
  }
  has_list_size_ = false;
  return true;
}

bool Decoder::take_length(Bytes& bytes, bool is_key) {
  const auto announced = take_number(bytes, 8);
  if (!announced) return false;
  const std::uint64_t length = *announced;
  if (length > most_bytes(is_key)) return refuse_length(length, is_key);
  length_ = static_cast<std::size_t>(length);
  has_length_ = true;
  return true;
}

bool Decoder::take_text(Bytes& bytes, std::string& text) {
  const std::size_t taken = std::min(length_ - text.size(), bytes.size());
  const std::size_t needed = text.size() + taken;
  // Memory grows with the bytes that have come, not with the announced length, which costs a client nothing.
  if (needed > text.capacity()) text.reserve(std::min(length_, std::max(needed, 2 * text.capacity())));
  text.append(as_text(bytes.first(taken)));
  held_bytes_ += taken;
  bytes = bytes.subspan(taken);
  if (text.size() < length_) return false;
  has_length_ = false;
  return true;
}

// The refusals are functions of their own, so that the code that decodes commands stays short.
bool Decoder::refuse_op(std::uint8_t op) {
  if (Op{op} == Op::kValidate) return refuse(Refusal::Kind::kSecondValidate, "it sent VALIDATE a second time");
  return refuse(Refusal::Kind::kUnknownOp, format("it sent the unknown request {}", op));
}

bool Decoder::refuse_count(std::uint64_t count) {
  return refuse(Refusal::Kind::kTooManyKeys,
                format("it sent a request with {} keys; at most {} are allowed", count, limits::kStoreKeysPerCommand));
}

bool Decoder::refuse_length(std::uint64_t length, bool is_key) {
  return refuse(
      is_key ? Refusal::Kind::kKeyTooLong : Refusal::Kind::kValueTooLong,
      format("it sent a {} of {} bytes; at most {} are allowed", is_key ? "key" : "value", length, most_bytes(is_key)));
}

bool Decoder::refuse(Refusal::Kind kind, std::string reason) {
  refusal_ = {kind, std::move(reason)};
  refused_ = true;
  return false;
}

void Decoder::release() {
  // An assignment would keep the memory of a string.
  for (std::string* text : {&command_.key, &command_.value, &command_.expected}) std::string().swap(*text);
  for (std::vector<std::string>* list : {&command_.keys, &command_.values}) std::vector<std::string>().swap(*list);
  held_bytes_ = 0;
}

void put_u32(std::string& out, std::uint32_t number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put_i64(std::string& out, std::int64_t number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put_string(std::string& out, std::string_view text) {
  put_i64(out, static_cast<std::int64_t>(text.size()));
  out.append(text);
}

}  // namespace elastic::store
