#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rendezvous/store/codec.h"

// The client's side of PyTorch's TCPStore protocol, as far as Client needs it: encodes requests and decodes replies.
namespace elastic::store {

// Append requests to the bytes for a server. Keys are as on the wire: PyTorch's client puts '/' before each of its
// user's keys. Lengths are not checked here; a server closes the connection if one is too long.
void put_hello(std::string& out);  // VALIDATE, which must come first on a connection, and has no reply
void put_get(std::string& out, std::string_view key);
void put_compare_set(std::string& out, std::string_view key, std::string_view expected, std::string_view desired);

// The most bytes of a reply; a longer one is an error.
inline constexpr std::size_t kReplyBytes = 64 * 1024 * 1024;

// Decodes a connection's bytes, in pieces of any size, into the expected replies: each is a text. Its time is linear in
// the number of bytes. It holds at most one unfinished reply.
class ReplyReader {
 public:
  enum class Step {
    kNeedMore,  // all bytes were consumed, and no reply is complete
    kReply,     // the next expected reply is complete; the bytes that are left may have more
    kNonsense,  // reason() says why this is no reply; nothing further can be read
  };

  // Expects another reply after those that are expected already.
  void expect() { ++expected_; }

  // Consumes bytes from the front of `bytes` up to the end of one reply.
  Step next(Bytes& bytes);

  // The reply that next() completed, until the next call; the caller may move it away.
  std::string& text() { return text_; }

  // Why it is no reply, as a clause: "a text of 99999999 bytes in a reply; at most 67108864 are possible".
  const std::string& reason() const { return reason_; }

 private:
  Step nonsense(std::string reason);

  std::size_t expected_ = 0;
  std::string text_;
  std::string reason_;
  std::array<std::uint8_t, 8> length_{};  // of the present reply: its first `length_size_` bytes
  std::size_t length_size_ = 0;
};

}  // namespace elastic::store
