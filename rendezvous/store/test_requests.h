#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/store/codec.h"
#include "src/base/text.h"

// The client's side of PyTorch's TCPStore protocol, for tests and benches: encodes requests and decodes replies.
namespace elastic::store::test {

using Keys = std::span<const std::string>;
using Pairs = std::span<const std::pair<std::string, std::string>>;

inline void put_op(std::string& out, Op op) { put_byte(out, static_cast<std::uint8_t>(op)); }
inline void put_key(std::string& out, Op op, std::string_view key) {
  put_op(out, op);
  put_string(out, key);
}
inline void put_key_value(std::string& out, Op op, std::string_view key, std::string_view value) {
  put_key(out, op, key);
  put_string(out, value);
}
inline void put_key_number(std::string& out, Op op, std::string_view key, std::int64_t number) {
  put_key(out, op, key);
  put_i64(out, number);
}
inline void put_keys(std::string& out, Op op, Keys keys) {
  put_op(out, op);
  put_i64(out, static_cast<std::int64_t>(keys.size()));
  for (const std::string& key : keys) put_string(out, key);
}

// Append requests to the bytes for a server. Keys are as on the wire: PyTorch's client puts '/' before each of its
// user's keys.
inline void put_hello(std::string& out) {  // VALIDATE, which must come first on a connection, and has no reply
  put_op(out, Op::kValidate);
  put_u32(out, 0x3C85F7CE);
}
inline void put_get(std::string& out, std::string_view key) { put_key(out, Op::kGet, key); }
inline void put_compare_set(std::string& out, std::string_view key, std::string_view expected,
                            std::string_view desired) {
  put_op(out, Op::kCompareSet);
  for (const std::string_view text : {key, expected, desired}) put_string(out, text);
}
inline void put_set(std::string& out, std::string_view key, std::string_view value) {
  put_key_value(out, Op::kSet, key, value);
}
inline void put_add(std::string& out, std::string_view key, std::int64_t delta) {
  put_key_number(out, Op::kAdd, key, delta);
}
inline void put_check(std::string& out, Keys keys) { put_keys(out, Op::kCheck, keys); }
inline void put_wait(std::string& out, Keys keys) { put_keys(out, Op::kWait, keys); }
inline void put_get_num_keys(std::string& out) { put_op(out, Op::kGetNumKeys); }
inline void put_delete_key(std::string& out, std::string_view key) { put_key(out, Op::kDeleteKey, key); }
inline void put_append(std::string& out, std::string_view key, std::string_view value) {
  put_key_value(out, Op::kAppend, key, value);
}
inline void put_multi_get(std::string& out, Keys keys) { put_keys(out, Op::kMultiGet, keys); }
inline void put_multi_set(std::string& out, Pairs pairs) {
  put_op(out, Op::kMultiSet);
  put_i64(out, static_cast<std::int64_t>(pairs.size()));
  for (const auto& [key, value] : pairs) {
    put_string(out, key);
    put_string(out, value);
  }
}
inline void put_cancel_wait(std::string& out) { put_op(out, Op::kCancelWait); }
inline void put_ping(std::string& out, std::uint32_t nonce) {
  put_op(out, Op::kPing);
  put_u32(out, nonce);
}
inline void put_queue_push(std::string& out, std::string_view key, std::string_view value) {
  put_key_value(out, Op::kQueuePush, key, value);
}
inline void put_queue_pop(std::string& out, std::string_view key) { put_key(out, Op::kQueuePop, key); }
inline void put_queue_len(std::string& out, std::string_view key) { put_key(out, Op::kQueueLen, key); }
inline void put_list_keys(std::string& out) { put_op(out, Op::kListKeys); }
inline void put_barrier(std::string& out, std::string_view key, std::int64_t world_size) {
  put_key_number(out, Op::kBarrier, key, world_size);
}

// The bytes that one of the put_ functions appends.
template <class... Parameters, class... Arguments>
std::string made_by(void (*put)(std::string&, Parameters...), const Arguments&... arguments) {
  std::string out;
  put(out, arguments...);
  return out;
}

inline const std::string kHello = made_by(put_hello);

inline std::string op(Op which) { return std::string(1, static_cast<char>(which)); }
inline std::string i64(std::int64_t number) { return made_by(put_i64, number); }
inline std::string text(std::string_view content) { return made_by(put_string, content); }

inline std::string key_list(const std::vector<std::string>& keys) {
  std::string out = i64(static_cast<std::int64_t>(keys.size()));
  for (const std::string& key : keys) out += text(key);
  return out;
}

inline std::string set(std::string_view key, std::string_view value) { return made_by(put_set, key, value); }
inline std::string get(std::string_view key) { return made_by(put_get, key); }
inline std::string add(std::string_view key, std::int64_t delta) { return made_by(put_add, key, delta); }
inline std::string wait(const std::vector<std::string>& keys) { return made_by(put_wait, keys); }
inline std::string ping(std::string_view nonce) { return op(Op::kPing) + std::string(nonce); }

// The form of a reply, which does not name its request. SET, APPEND, MULTI_SET, QUEUE_PUSH and VALIDATE have no reply.
enum class Reply : std::uint8_t {
  kByte,    // CHECK, WAIT, CANCEL_WAIT, BARRIER
  kU32,     // PING
  kI64,     // ADD, DELETE_KEY, GETNUMKEYS, QUEUE_LEN
  kText,    // GET, COMPARE_SET
  kPopped,  // QUEUE_POP: an i64, and a text if that is not 0
  kTexts,   // MULTI_GET: as many texts as keys were asked for
  kList,    // LIST_KEYS: an i64 and that many texts
};

// The most bytes of a text in a reply; a longer one is an error.
inline constexpr std::size_t kReplyBytes = 64 * 1024 * 1024;

// Decodes a connection's bytes, in pieces of any size, into the expected replies.
class ReplyReader {
 public:
  enum class Step : std::uint8_t {
    kNeedMore,  // all bytes were consumed, and no reply is complete
    kReply,     // the next expected reply is complete; the bytes that are left may have more
    kNonsense,  // reason() says why this is no reply; nothing further can be read
  };

  // Expects another reply after those that are expected already; `count` is that of kTexts.
  void expect(Reply shape, std::size_t count = 1) { expected_.push_back({shape, count}); }
  std::size_t expected() const { return expected_.size(); }

  // Consumes bytes from the front of `bytes` up to the end of one reply. A kTexts of 0 texts needs no byte.
  Step next(Bytes& bytes) {
    if (expected_.empty() && !bytes.empty()) reason_ = format("{} bytes came although nothing was asked", bytes.size());
    if (!reason_.empty()) return Step::kNonsense;
    if (expected_.empty()) return Step::kNeedMore;
    if (!std::exchange(in_reply_, true)) {
      number_.reset();
      text_.clear();
      texts_.clear();
      texts_done_ = 0;
    }
    if (!take_reply(expected_.front(), bytes)) return reason_.empty() ? Step::kNeedMore : Step::kNonsense;
    in_reply_ = false;
    expected_.pop_front();
    return Step::kReply;
  }

  // The values of the reply that next() completed, until the next call. number() is the byte, u32, i64 or count; else
  // 0.
  std::int64_t number() const { return number_.value_or(0); }
  const std::string& text() const { return text_; }                 // kText, kPopped; empty if there was none
  const std::vector<std::string>& texts() const { return texts_; }  // kTexts, kList

  const std::string& reason() const { return reason_; }

 private:
  struct Expected {
    Reply shape;
    std::size_t count;
  };

  // Each consumes what it can from `bytes`. False means that more bytes are needed, or that this is no reply.
  bool take_reply(const Expected& expected, Bytes& bytes) {
    switch (expected.shape) {
      case Reply::kByte: return take_number(bytes, 1);
      case Reply::kU32: return take_number(bytes, 4);
      case Reply::kI64: return take_number(bytes, 8);
      case Reply::kText: return take_text(bytes, text_);
      case Reply::kPopped: return take_number(bytes, 8) && (number() == 0 || take_text(bytes, text_));
      case Reply::kTexts: return take_texts(bytes, expected.count);
      case Reply::kList: break;
    }
    return take_number(bytes, 8) && take_texts(bytes, static_cast<std::uint64_t>(number()));
  }
  bool take_number(Bytes& bytes, std::size_t size) {
    if (!number_) number_ = take_integer(bytes, size);
    return number_.has_value();
  }
  std::optional<std::int64_t> take_integer(Bytes& bytes, std::size_t size) {
    const std::size_t taken = std::min(size - part_size_, bytes.size());
    std::copy_n(bytes.begin(), taken, part_.begin() + static_cast<std::ptrdiff_t>(part_size_));
    part_size_ += taken;
    bytes = bytes.subspan(taken);
    if (part_size_ < size) return {};
    std::int64_t number = 0;
    std::memcpy(&number, part_.data(), size);  // little-endian
    part_size_ = 0;
    return number;
  }
  bool take_text(Bytes& bytes, std::string& text) {
    if (!length_) length_ = take_integer(bytes, 8);
    if (!length_) return false;
    const auto length = static_cast<std::uint64_t>(*length_);
    if (length > kReplyBytes) reason_ = format("a text of {} bytes in a reply", length);
    if (!reason_.empty()) return false;
    const std::size_t taken = std::min(static_cast<std::size_t>(length) - text.size(), bytes.size());
    text.append(reinterpret_cast<const char*>(bytes.data()), taken);
    bytes = bytes.subspan(taken);
    if (text.size() < length) return false;
    length_.reset();
    return true;
  }
  bool take_texts(Bytes& bytes, std::uint64_t count) {
    for (; texts_done_ < count; ++texts_done_) {
      if (texts_.size() == texts_done_) texts_.emplace_back();
      if (!take_text(bytes, texts_.back())) return false;
    }
    return true;
  }

  std::deque<Expected> expected_;
  bool in_reply_ = false;
  std::optional<std::int64_t> number_;
  std::string text_;
  std::vector<std::string> texts_;
  std::size_t texts_done_ = 0;
  std::optional<std::int64_t> length_;  // of the text being read
  std::array<std::uint8_t, 8> part_{};  // the first bytes of an integer that comes in pieces
  std::size_t part_size_ = 0;
  std::string reason_;
};

}  // namespace elastic::store::test
