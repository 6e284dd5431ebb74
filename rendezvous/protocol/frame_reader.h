#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rendezvous/protocol/codec.h"

namespace elastic::protocol {

// Cuts the bytes of one direction of a connection into frames. A length is judged as soon as it is there;
// memory grows with what has come, not with what is announced.
class FrameReader {
 public:
  enum class Step : std::uint8_t {
    kNeedMore,  // all bytes were taken
    kFrame,
    kStranger,  // the first bytes are not kMark; stranger() says what they may be
    kTooLong,   // length() is above the limit
    kTooShort,  // length() is too little for a header
  };

  // Takes bytes from the front of `bytes` up to the end of one frame, whose length may be at most `limit`.
  // After one of the last three there is nothing more to be had.
  Step next(Bytes& bytes, std::size_t limit);

  // What next() completed. It lies in the bytes given to next() or in the reader, until the next call.
  const Frame& frame() const { return frame_; }
  std::size_t length() const { return length_; }
  // "it speaks HTTP, not elastic-run's agent protocol".
  const std::string& stranger() const { return stranger_; }
  // Memory of an unfinished frame.
  std::size_t held_bytes() const { return buffer_.capacity(); }

 private:
  bool take_mark(Bytes& bytes);
  bool judge_length(Bytes start, std::size_t limit, Step& step);
  void set_frame(Bytes whole);

  ByteString buffer_;  // an unfinished frame, from its length on
  Frame frame_;
  std::string stranger_;
  std::size_t length_ = 0;
  std::uint8_t mark_size_ = 0;  // bytes of it that have come
  bool done_ = false;           // buffer_ holds the frame that was given out
};

}  // namespace elastic::protocol
