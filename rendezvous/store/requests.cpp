#include "rendezvous/store/requests.h"

#include <algorithm>
#include <cstring>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::store {
namespace {

constexpr std::uint32_t kMagic = 0x3C85F7CE;

void put_op(std::string& out, Op op) { put_byte(out, static_cast<std::uint8_t>(op)); }

void put_keys(std::string& out, Op op, Keys keys) {
  put_op(out, op);
  put_i64(out, static_cast<std::int64_t>(keys.size()));
  for (const std::string& key : keys) put_string(out, key);
}

void put_key(std::string& out, Op op, std::string_view key) {
  put_op(out, op);
  put_string(out, key);
}

void put_key_value(std::string& out, Op op, std::string_view key, std::string_view value) {
  put_key(out, op, key);
  put_string(out, value);
}

void put_key_number(std::string& out, Op op, std::string_view key, std::int64_t number) {
  put_key(out, op, key);
  put_i64(out, number);
}

}  // namespace

void put_hello(std::string& out) {
  put_op(out, Op::kValidate);
  put_u32(out, kMagic);
}

void put_set(std::string& out, std::string_view key, std::string_view value) {
  put_key_value(out, Op::kSet, key, value);
}

void put_compare_set(std::string& out, std::string_view key, std::string_view expected, std::string_view desired) {
  put_key_value(out, Op::kCompareSet, key, expected);
  put_string(out, desired);
}

void put_get(std::string& out, std::string_view key) { put_key(out, Op::kGet, key); }

void put_add(std::string& out, std::string_view key, std::int64_t delta) { put_key_number(out, Op::kAdd, key, delta); }

void put_check(std::string& out, Keys keys) { put_keys(out, Op::kCheck, keys); }

void put_wait(std::string& out, Keys keys) { put_keys(out, Op::kWait, keys); }

void put_get_num_keys(std::string& out) { put_op(out, Op::kGetNumKeys); }

void put_delete_key(std::string& out, std::string_view key) { put_key(out, Op::kDeleteKey, key); }

void put_append(std::string& out, std::string_view key, std::string_view value) {
  put_key_value(out, Op::kAppend, key, value);
}

void put_multi_get(std::string& out, Keys keys) { put_keys(out, Op::kMultiGet, keys); }

void put_multi_set(std::string& out, Pairs pairs) {
  put_op(out, Op::kMultiSet);
  put_i64(out, static_cast<std::int64_t>(pairs.size()));
  for (const auto& [key, value] : pairs) {
    put_string(out, key);
    put_string(out, value);
  }
}

void put_cancel_wait(std::string& out) { put_op(out, Op::kCancelWait); }

void put_ping(std::string& out, std::uint32_t nonce) {
  put_op(out, Op::kPing);
  put_u32(out, nonce);
}

void put_queue_push(std::string& out, std::string_view key, std::string_view value) {
  put_key_value(out, Op::kQueuePush, key, value);
}

void put_queue_pop(std::string& out, std::string_view key) { put_key(out, Op::kQueuePop, key); }

void put_queue_len(std::string& out, std::string_view key) { put_key(out, Op::kQueueLen, key); }

void put_list_keys(std::string& out) { put_op(out, Op::kListKeys); }

void put_barrier(std::string& out, std::string_view key, std::int64_t world_size) {
  put_key_number(out, Op::kBarrier, key, world_size);
}

void ReplyReader::cancel_wait() {
  ELASTIC_CHECK(!expected_.empty() && expected_.front().shape == Reply::kByte);
  expected_.front().shape = Reply::kCanceled;
}

ReplyReader::Step ReplyReader::next(Bytes& bytes) {
  if (!reason_.empty()) return Step::kNonsense;
  if (expected_.empty()) {
    if (bytes.empty()) return Step::kNeedMore;
    nonsense(format("{} bytes came although nothing was asked", bytes.size()));
    return Step::kNonsense;
  }
  if (!in_reply_) {
    in_reply_ = true;
    has_number_ = false;
    number_ = 0;
    text_.clear();
    texts_.clear();
    texts_done_ = 0;
    reply_bytes_ = 0;
  }
  if (!take_reply(expected_.front(), bytes)) return reason_.empty() ? Step::kNeedMore : Step::kNonsense;
  in_reply_ = false;
  expected_.pop_front();
  return Step::kReply;
}

bool ReplyReader::take_reply(const Expected& expected, Bytes& bytes) {
  switch (expected.shape) {
    case Reply::kByte: return take_number(bytes, 1);
    case Reply::kCanceled: return take_canceled(bytes);
    case Reply::kU32: return take_number(bytes, 4);
    case Reply::kI64: return take_number(bytes, 8);
    case Reply::kText: return take_text(bytes, text_);
    case Reply::kPopped: return take_number(bytes, 8) && (number_ == 0 || take_text(bytes, text_));
    case Reply::kTexts: return take_texts(bytes, expected.count);
    case Reply::kList: break;
  }
  if (!take_number(bytes, 8)) return false;
  // Each text has at least its length.
  constexpr auto kMost = static_cast<std::int64_t>(kReplyBytes / 8);
  if (number_ < 0 || number_ > kMost) {
    return nonsense(format("a list of {} keys; at most {} are possible", number_, kMost));
  }
  return take_texts(bytes, static_cast<std::uint64_t>(number_));
}

bool ReplyReader::take_canceled(Bytes& bytes) {
  if (!take_number(bytes, 1)) return false;
  if (number_ == kWaitCanceled) return true;
  if (number_ != kStopWaiting) return nonsense(format("byte {} in reply to CANCEL_WAIT", number_));
  std::uint64_t second = 0;
  if (!take_integer(bytes, 1, second)) return false;
  return second == kWaitCanceled || nonsense(format("byte {} in reply to CANCEL_WAIT", second));
}

bool ReplyReader::take_number(Bytes& bytes, std::size_t size) {
  if (has_number_) return true;
  std::uint64_t number = 0;
  if (!take_integer(bytes, size, number)) return false;
  number_ = static_cast<std::int64_t>(number);
  has_number_ = true;
  return true;
}

bool ReplyReader::take_integer(Bytes& bytes, std::size_t size, std::uint64_t& number) {
  const std::size_t taken = std::min(size - part_size_, bytes.size());
  std::copy_n(bytes.begin(), taken, part_.begin() + static_cast<std::ptrdiff_t>(part_size_));
  part_size_ += taken;
  bytes = bytes.subspan(taken);
  if (part_size_ < size) return false;
  std::memcpy(&number, part_.data(), size);  // little-endian, as the codec demands
  part_size_ = 0;
  return true;
}

bool ReplyReader::take_text(Bytes& bytes, std::string& text) {
  if (!has_length_) {
    std::uint64_t length = 0;
    if (!take_integer(bytes, 8, length)) return false;
    if (length > kReplyBytes || reply_bytes_ + length > kReplyBytes) {
      return nonsense(format("a text of {} bytes in a reply; at most {} are possible", length, kReplyBytes));
    }
    length_ = static_cast<std::size_t>(length);
    reply_bytes_ += length_;
    has_length_ = true;
  }
  const std::size_t taken = std::min(length_ - text.size(), bytes.size());
  // Memory grows with the bytes that have come, not with the announced length.
  text.append(reinterpret_cast<const char*>(bytes.data()), taken);
  bytes = bytes.subspan(taken);
  if (text.size() < length_) return false;
  has_length_ = false;
  return true;
}

bool ReplyReader::take_texts(Bytes& bytes, std::uint64_t count) {
  for (; texts_done_ < count; ++texts_done_) {
    if (texts_.size() == texts_done_) texts_.emplace_back();
    if (!take_text(bytes, texts_.back())) return false;
  }
  return true;
}

bool ReplyReader::nonsense(std::string reason) {
  reason_ = std::move(reason);
  return false;
}

}  // namespace elastic::store
