#include "rendezvous/store/requests.h"

#include <algorithm>
#include <cstring>

#include "src/base/text.h"

namespace elastic::store {
namespace {

constexpr std::uint32_t kMagic = 0x3C85F7CE;

void put_op(std::string& out, Op op) { put_byte(out, static_cast<std::uint8_t>(op)); }

}  // namespace

void put_hello(std::string& out) {
  put_op(out, Op::kValidate);
  put_u32(out, kMagic);
}

void put_get(std::string& out, std::string_view key) {
  put_op(out, Op::kGet);
  put_string(out, key);
}

void put_compare_set(std::string& out, std::string_view key, std::string_view expected, std::string_view desired) {
  put_op(out, Op::kCompareSet);
  for (const std::string_view text : {key, expected, desired}) put_string(out, text);
}

ReplyReader::Step ReplyReader::next(Bytes& bytes) {
  if (!reason_.empty()) return Step::kNonsense;
  if (expected_ == 0) {
    return bytes.empty() ? Step::kNeedMore : nonsense(format("{} bytes came although nothing was asked", bytes.size()));
  }
  if (length_size_ == 0) text_.clear();
  const std::size_t of_length = std::min(length_.size() - length_size_, bytes.size());
  std::copy_n(bytes.begin(), of_length, length_.begin() + static_cast<std::ptrdiff_t>(length_size_));
  length_size_ += of_length;
  bytes = bytes.subspan(of_length);
  if (length_size_ < length_.size()) return Step::kNeedMore;
  std::uint64_t length = 0;
  std::memcpy(&length, length_.data(), sizeof length);  // little-endian, as the codec demands
  if (length > kReplyBytes) {
    return nonsense(format("a text of {} bytes in a reply; at most {} are possible", length, kReplyBytes));
  }
  const std::size_t taken = std::min(static_cast<std::size_t>(length) - text_.size(), bytes.size());
  // Memory grows with the bytes that have come, not with the announced length.
  text_.append(reinterpret_cast<const char*>(bytes.data()), taken);
  bytes = bytes.subspan(taken);
  if (text_.size() < length) return Step::kNeedMore;
  length_size_ = 0;
  --expected_;
  return Step::kReply;
}

ReplyReader::Step ReplyReader::nonsense(std::string reason) {
  reason_ = std::move(reason);
  return Step::kNonsense;
}

}  // namespace elastic::store
