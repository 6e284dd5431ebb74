#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rendezvous/protocol/codec.h"

namespace elastic::protocol {

// Splits the bytes of one direction of a connection into frames. A length is checked as soon as it has arrived, and
// memory grows with the bytes that have arrived, not with the length.
class FrameReader {
 public:
  enum class Step : std::uint8_t {
    kNeedMore,  // all bytes were consumed, and the frame is not complete
    kFrame,     // frame() is complete
    kStranger,  // the first bytes are not kMark; stranger() says which protocol they may be
    kTooLong,   // length() is above the limit
    kTooShort,  // length() is too small for a header
  };

  // Consumes bytes from the front of `bytes` up to the end of one frame, whose length may be at most `limit` bytes.
  // After one of the last three results no further call makes sense.
  Step next(Bytes& bytes, std::size_t limit);

  // The frame that next() completed. Its bytes are those given to next() or the reader's own, until the next call.
  const Frame& frame() const { return frame_; }
  std::size_t length() const { return length_; }
  // "it speaks HTTP, not elastic-run's agent protocol".
  const std::string& stranger() const { return stranger_; }
  // The bytes of memory that an unfinished frame takes.
  std::size_t held_bytes() const { return buffer_.capacity(); }

 private:
  bool take_mark(Bytes& bytes);
  bool judge_length(Bytes start, std::size_t limit, Step& step);
  void set_frame(Bytes whole);

  ByteString buffer_;  // an unfinished frame, from its length on
  Frame frame_;
  std::string stranger_;
  std::size_t length_ = 0;
  std::uint8_t mark_size_ = 0;  // how many bytes of kMark have come
  bool done_ = false;           // buffer_ holds the frame that was returned last
};

}  // namespace elastic::protocol
