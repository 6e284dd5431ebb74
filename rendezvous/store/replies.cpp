#include "rendezvous/store/replies.h"

#include <utility>

namespace elastic::store {
namespace {

// A shorter text is copied if the bytes before it are few: that costs less than a piece of its own.
constexpr std::size_t kCopiedBytes = 16 * 1024;
constexpr std::size_t kLongBytes = 64 * 1024;

}  // namespace

void Replies::put_long(const Value& value) {
  put_i64(end_, static_cast<std::int64_t>(value.size()));
  const bool copied = value.size() < kCopiedBytes && end_.size() < kLongBytes;
  for (const ChunkPtr& chunk : value.chunks()) {
    if (copied) {
      end_ += chunk->text();
    } else {
      cut(chunk->loose());
      add(chunk);
    }
  }
  end_ += value.end();
}

void Replies::put(std::string&& text, const LooseBytesPtr& loose) {
  if (text.size() < kCopiedBytes) return put_string(end_, text);
  put_i64(end_, static_cast<std::int64_t>(text.size()));
  cut(loose);
  add(std::make_shared<Chunk>(std::move(text), Chunk::Of::kReply, loose));
}

void Replies::cut_if_long(const LooseBytesPtr& loose) {
  if (end_.size() >= kLongBytes) cut(loose);
}

void Replies::cut(const LooseBytesPtr& loose) {
  if (!end_.empty()) add(std::make_shared<Chunk>(std::exchange(end_, {}), Chunk::Of::kReply, loose));
}

void Replies::add(ChunkPtr chunk) {
  chunk_bytes_ += chunk->text().size();
  chunks_.push_back(std::move(chunk));
}

std::size_t Replies::loose_bytes() const {
  std::size_t bytes = chunks_.capacity() * sizeof(ChunkPtr) + end_.size();
  for (std::size_t i = first_; i < chunks_.size(); ++i) bytes += chunks_[i]->loose_bytes();
  return bytes;
}

Replies::Slice Replies::take_bytes(std::size_t most, const LooseBytesPtr& loose) {
  if (!has_chunks()) cut(loose);
  Slice slice;
  while (most > 0 && has_chunks()) {
    ChunkPtr& chunk = chunks_[first_];
    const std::string_view piece = chunk->text().substr(taken_of_first_, most);
    slice.pieces.push_back(piece);
    most -= piece.size();
    chunk_bytes_ -= piece.size();
    taken_of_first_ += piece.size();
    if (taken_of_first_ < chunk->text().size()) {
      slice.chunks.push_back(chunk);
    } else {
      slice.chunks.push_back(std::move(chunk));
      ++first_;
      taken_of_first_ = 0;
    }
  }
  forget_taken();
  return slice;
}

// Its time is amortised by the chunks that have been taken.
void Replies::forget_taken() {
  if (!has_chunks()) {
    std::vector<ChunkPtr>().swap(chunks_);
    first_ = 0;
  } else if (first_ > chunks_.size() / 2) {
    chunks_.erase(chunks_.begin(), chunks_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

std::string Replies::whole() const {
  std::string text;
  text.reserve(size());
  for (std::size_t i = first_; i < chunks_.size(); ++i) {
    text += chunks_[i]->text().substr(i == first_ ? taken_of_first_ : 0);
  }
  return text += end_;
}

}  // namespace elastic::store
