#include "rendezvous/store/value.h"

#include <utility>

namespace elastic::store {
namespace {

// A text of at most so many bytes is copied into the memory of the one that it replaces.
constexpr std::size_t kSmallBytes = 256;
// A text of at least so many bytes is a chunk.
constexpr std::size_t kChunkBytes = 1024;
// About how many bytes are allocated beside a chunk's text.
constexpr std::size_t kAroundChunk = sizeof(Chunk) + 32;

}  // namespace

Chunk::Chunk(std::string&& text, Of of, LooseBytesPtr loose)
    : text_(std::move(text)), loose_(std::move(loose)), is_loose_(of == Of::kReply) {
  if (is_loose_) loose_->count += bytes();
}

Chunk::~Chunk() {
  if (is_loose_) loose_->count -= bytes();
}

// Memory that a long text has reserved beside its bytes takes no pages until it is written to.
std::size_t Chunk::bytes() const { return text_.size() + kAroundChunk; }

void Chunk::leave_store() {
  is_loose_ = true;
  loose_->count += bytes();
}

void Value::set(std::string&& text, const LooseBytesPtr& loose) {
  if (chunks_.empty() && text.size() <= end_.capacity() && end_.capacity() <= kSmallBytes) {
    end_.assign(text);  // both strings keep their memory
    return;
  }
  if (!chunks_.empty()) leave_chunks();
  // An assignment would keep the memory of the replaced text, here or in the command.
  std::string taken(std::move(text));
  if (taken.size() < kChunkBytes) {
    end_.swap(taken);
  } else {
    std::string().swap(end_);
    add_chunk(std::move(taken), loose);
  }
}

void Value::append(std::string&& text, const LooseBytesPtr& loose) {
  if (size() == 0) return set(std::move(text), loose);
  end_ += text;
  if (end_.size() < kChunkBytes) return;
  // A text that many appends have built has up to twice the memory that it needs, and does not grow any more.
  if (end_.capacity() < 2 * kChunkBytes) end_.shrink_to_fit();
  add_chunk(std::exchange(end_, {}), loose);
}

bool Value::operator==(std::string_view text) const {
  if (text.size() != size()) return false;
  for (const ChunkPtr& chunk : chunks_) {
    if (!text.starts_with(chunk->text())) return false;
    text.remove_prefix(chunk->text().size());
  }
  return text == end_;
}

std::string_view Value::put_together(std::string& room) const {
  room.clear();
  room.reserve(size());
  for (const ChunkPtr& chunk : chunks_) room += chunk->text();
  return room += end_;
}

void Value::leave_chunks() {
  for (const ChunkPtr& chunk : chunks_) chunk->leave_store();
  std::vector<ChunkPtr>().swap(chunks_);
  chunk_bytes_ = 0;
}

void Value::add_chunk(std::string&& text, const LooseBytesPtr& loose) {
  chunk_bytes_ += text.size();
  chunks_.push_back(std::make_shared<Chunk>(std::move(text), Chunk::Of::kStore, loose));
}

}  // namespace elastic::store
