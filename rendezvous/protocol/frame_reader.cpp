#include "rendezvous/protocol/frame_reader.h"

#include <algorithm>
#include <string_view>

#include "rendezvous/protocol/big_endian.h"
#include "src/base/strangers.h"
#include "src/base/text.h"

namespace elastic::protocol {
namespace {

constexpr std::size_t kLengthSize = 4;
constexpr std::size_t kHeaderSize = 17;  // type, incarnation, term, round
// How many bytes the reader of an idle connection may keep allocated.
constexpr std::size_t kKeptBytes = 1024;

// Which protocol the first bytes of a connection are taken for.
std::string stranger_of(std::string_view seen) {
  if (const auto stranger = recognised(seen)) {
    return format("it speaks {}, not elastic-run's agent protocol", name_of(*stranger));
  }
  return format("it does not speak elastic-run's agent protocol ({})", first_bytes_text(seen));
}

}  // namespace

FrameReader::Step FrameReader::next(Bytes& bytes, std::size_t limit) {
  if (done_) {
    buffer_.clear();
    if (buffer_.capacity() > kKeptBytes) ByteString().swap(buffer_);
    done_ = false;
  }
  if (mark_size_ < kMark.size() && !take_mark(bytes)) {
    return stranger_.empty() ? Step::kNeedMore : Step::kStranger;
  }
  Step step = Step::kFrame;
  if (buffer_.empty() && bytes.size() >= kLengthSize) {
    if (!judge_length(bytes, limit, step)) return step;
    if (bytes.size() - kLengthSize >= length_) {  // the usual case: nothing is copied
      set_frame(bytes.first(kLengthSize + length_));
      bytes = bytes.subspan(kLengthSize + length_);
      return step;
    }
  }
  const auto collect = [&](std::size_t size) {
    const std::size_t taken = std::min(size - std::min(size, buffer_.size()), bytes.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(taken));
    bytes = bytes.subspan(taken);
    return buffer_.size() >= size;
  };
  if (!collect(kLengthSize)) return Step::kNeedMore;
  if (!judge_length(buffer_, limit, step)) return step;
  if (!collect(kLengthSize + length_)) return Step::kNeedMore;
  set_frame(buffer_);
  done_ = true;
  return step;
}

bool FrameReader::take_mark(Bytes& bytes) {
  std::size_t taken = 0;
  for (; taken < bytes.size() && mark_size_ < kMark.size(); ++taken, ++mark_size_) {
    if (bytes[taken] == kMark[mark_size_]) continue;
    // Bytes of earlier reads were those of kMark, so they need not be kept.
    std::string seen(kMark.begin(), kMark.begin() + static_cast<std::ptrdiff_t>(mark_size_ - taken));
    seen.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    stranger_ = stranger_of(seen);
    return false;
  }
  bytes = bytes.subspan(taken);
  return mark_size_ == kMark.size();
}

bool FrameReader::judge_length(Bytes start, std::size_t limit, Step& step) {
  length_ = from_big_endian<std::uint32_t>(start);
  if (length_ > limit) step = Step::kTooLong;
  if (length_ < kHeaderSize) step = Step::kTooShort;
  return step == Step::kFrame;
}

void FrameReader::set_frame(Bytes whole) {
  const Bytes header = whole.subspan(kLengthSize);
  frame_.type = static_cast<FrameType>(header[0]);
  frame_.stamp.incarnation = from_big_endian<Incarnation>(header.subspan(1));
  frame_.stamp.term = from_big_endian<Term>(header.subspan(9));
  frame_.stamp.round = from_big_endian<RoundNumber>(header.subspan(13));
  frame_.fields = header.subspan(kHeaderSize);
  frame_.whole = whole;
}

}  // namespace elastic::protocol
