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

// The client's half of PyTorch's TCPStore protocol: requests out, replies in.
namespace elastic::store {

using Keys = std::span<const std::string>;
using Pairs = std::span<const std::pair<std::string, std::string>>;

// Requests, appended to the bytes for a server. Keys are as they go over the wire: PyTorch's client puts
// '/' before each of its user's keys. Lengths are not judged here; a server closes what is too long.
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

// What a reply looks like; it bears no sign of its request. SET, APPEND, MULTI_SET, QUEUE_PUSH and
// VALIDATE have none.
enum class Reply : std::uint8_t {
  kByte,      // CHECK, WAIT, CANCEL_WAIT, BARRIER
  kCanceled,  // of a WAIT or BARRIER that is still open and CANCEL_WAIT: byte 1, or bytes 0 and 1
  kU32,       // PING
  kI64,       // ADD, DELETE_KEY, GETNUMKEYS, QUEUE_LEN
  kText,      // GET, COMPARE_SET
  kPopped,    // QUEUE_POP: an i64, and a text if that is not 0
  kTexts,     // MULTI_GET: as many texts as keys were asked for
  kList,      // LIST_KEYS: an i64 and that many texts
};

// Bytes of one reply; more is taken for nonsense.
inline constexpr std::size_t kReplyBytes = 64 * 1024 * 1024;

// Turns a connection's bytes, in whatever pieces they come, into the replies to what was asked. Takes the
// time that the number of bytes needs; holds the one reply that is incomplete.
class ReplyReader {
 public:
  enum class Step {
    kNeedMore,  // all bytes are taken and no reply is complete
    kReply,     // the next expected reply is complete; there may be more in the bytes that are left
    kNonsense,  // reason() says why this can't be a reply; nothing further can be read
  };

  // Another reply is to come, after those that are expected already; `count` is that of kTexts.
  void expect(Reply shape, std::size_t count = 1) { expected_.push_back({shape, count}); }
  // CANCEL_WAIT was sent while the reply expected next, a kByte, was still to come.
  void cancel_wait();
  std::size_t expected() const { return expected_.size(); }

  // Takes bytes from the front of `bytes` up to the end of one reply. kTexts of none need no byte.
  Step next(Bytes& bytes);

  // Of the reply that next() completed, until the next call; the caller may take the texts.
  // The byte (kCanceled: 0 if the wait had been answered before, else 1), u32, i64 or count; else 0.
  std::int64_t number() const { return number_; }
  std::string& text() { return text_; }                 // kText, kPopped; empty if there was none
  std::vector<std::string>& texts() { return texts_; }  // kTexts, kList

  // For a person: "a text of 99999999 bytes; at most 67108864 are possible".
  const std::string& reason() const { return reason_; }

 private:
  struct Expected {
    Reply shape;
    std::size_t count;
  };

  // Each takes what it can from `bytes`; false means that more must come or that it was nonsense.
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
  std::array<std::uint8_t, 8> part_{};  // the start of an integer that came in pieces
  std::size_t part_size_ = 0;
  std::size_t length_ = 0;  // of the text being read
  std::size_t texts_done_ = 0;
  std::size_t reply_bytes_ = 0;  // announced so far by the current reply's lengths
  bool in_reply_ = false;
  bool has_number_ = false;
  bool has_length_ = false;
};

}  // namespace elastic::store
