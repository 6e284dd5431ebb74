#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/store/codec.h"

// The client's side of PyTorch's TCPStore protocol: encodes requests and decodes replies.
namespace elastic::store {

using Keys = std::span<const std::string>;
using Pairs = std::span<const std::pair<std::string, std::string>>;

// Append requests to the bytes for a server. Keys are as on the wire: PyTorch's client puts '/' before each of its
// user's keys. Lengths are not checked here; a server closes the connection if one is too long.
void put_hello(std::string& out);  // VALIDATE, which must come first on a connection
void put_set(std::string& out, std::string_view key, std::string_view value);
void put_compare_set(std::string& out, std::string_view key, std::string_view expected, std::string_view desired);
void put_get(std::string& out, std::string_view key);
void put_add(std::string& out, std::string_view key, std::int64_t delta);
void put_check(std::string& out, Keys keys);
void put_wait(std::string& out, Keys keys);
void put_get_num_keys(std::string& out);
void put_delete_key(std::string& out, std::string_view key);
void put_append(std::string& out, std::string_view key, std::string_view value);
void put_multi_get(std::string& out, Keys keys);
void put_multi_set(std::string& out, Pairs pairs);
void put_cancel_wait(std::string& out);
void put_ping(std::string& out, std::uint32_t nonce);
void put_queue_push(std::string& out, std::string_view key, std::string_view value);
void put_queue_pop(std::string& out, std::string_view key);
void put_queue_len(std::string& out, std::string_view key);
void put_list_keys(std::string& out);
void put_barrier(std::string& out, std::string_view key, std::int64_t world_size);

// The form of a reply, which does not name its request. SET, APPEND, MULTI_SET, QUEUE_PUSH and VALIDATE have no reply.
enum class Reply : std::uint8_t {
  kByte,      // CHECK, WAIT, CANCEL_WAIT, BARRIER
  kCanceled,  // CANCEL_WAIT of a WAIT or BARRIER without a reply yet: byte 1, or bytes 0 and 1
  kU32,       // PING
  kI64,       // ADD, DELETE_KEY, GETNUMKEYS, QUEUE_LEN
  kText,      // GET, COMPARE_SET
  kPopped,    // QUEUE_POP: an i64, and a text if that is not 0
  kTexts,     // MULTI_GET: as many texts as keys were asked for
  kList,      // LIST_KEYS: an i64 and that many texts
};

// The most bytes of a reply; a longer one is an error.
inline constexpr std::size_t kReplyBytes = 64 * 1024 * 1024;

// Decodes a connection's bytes, in pieces of any size, into the expected replies. Its time is linear in the number of
// bytes. It holds at most one unfinished reply.
class ReplyReader {
 public:
  enum class Step {
    kNeedMore,  // all bytes were consumed, and no reply is complete
    kReply,     // the next expected reply is complete; the bytes that are left may have more
    kNonsense,  // reason() says why this is no reply; nothing further can be read
  };

  // Expects another reply after those that are expected already; `count` is that of kTexts.
  void expect(Reply shape, std::size_t count = 1) { expected_.push_back({shape, count}); }
  // CANCEL_WAIT was sent before the next expected reply, a kByte, has come.
  void cancel_wait();
  std::size_t expected() const { return expected_.size(); }

  // Consumes bytes from the front of `bytes` up to the end of one reply. A kTexts of 0 texts needs no byte.
  Step next(Bytes& bytes);

  // The values of the reply that next() completed, until the next call; the caller may move the texts away. number() is
  // the byte (kCanceled: 0 if the wait had been answered before, else 1), u32, i64 or count; else 0.
  std::int64_t number() const { return number_; }
  std::string& text() { return text_; }                 // kText, kPopped; empty if there was none
  std::vector<std::string>& texts() { return texts_; }  // kTexts, kList

  // Why it is no reply, as a clause: "a text of 99999999 bytes; at most 67108864 are possible".
  const std::string& reason() const { return reason_; }

 private:
  struct Expected {
    Reply shape;
    std::size_t count;
  };

  // Each consumes what it can from `bytes`. False means that more bytes are needed, or that this is no reply.
  bool take_reply(const Expected& expected, Bytes& bytes);
  bool take_canceled(Bytes& bytes);
  bool take_number(Bytes& bytes, std::size_t size);  // into number_, once for each reply
  bool take_integer(Bytes& bytes, std::size_t size, std::uint64_t& number);
  bool take_text(Bytes& bytes, std::string& text);
  bool take_texts(Bytes& bytes, std::uint64_t count);
  bool nonsense(std::string reason);  // always false

  std::deque<Expected> expected_;
  std::int64_t number_ = 0;
  std::string text_;
  std::vector<std::string> texts_;
  std::string reason_;
  std::array<std::uint8_t, 8> part_{};  // the first bytes of an integer that comes in pieces
  std::size_t part_size_ = 0;
  std::size_t length_ = 0;  // of the text being read
  std::size_t texts_done_ = 0;
  std::size_t reply_bytes_ = 0;  // the sum of the present reply's lengths so far
  bool in_reply_ = false;
  bool has_number_ = false;
  bool has_length_ = false;
};

}  // namespace elastic::store
