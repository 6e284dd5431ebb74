#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace elastic::store {

// The number of bytes of all chunks that are in no key and no queue any more, but in replies.
struct LooseBytes {
  std::size_t count = 0;
};
using LooseBytesPtr = std::shared_ptr<LooseBytes>;

// A long text that a key or a queue and any number of replies share. It never changes.
class Chunk {
 public:
  enum class Of : std::uint8_t { kStore, kReply };
  Chunk(std::string&& text, Of of, LooseBytesPtr loose);
  ~Chunk();
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  std::string_view text() const { return text_; }
  const LooseBytesPtr& loose() const { return loose_; }
  // Its memory in bytes if only replies have it; else 0.
  std::size_t loose_bytes() const { return is_loose_ ? bytes() : 0; }
  // The key or queue that had it drops it.
  void leave_store();

 private:
  std::size_t bytes() const;

  std::string text_;
  LooseBytesPtr loose_;
  bool is_loose_;
};
using ChunkPtr = std::shared_ptr<Chunk>;

// The value of a key, or an item of a queue. Long parts are in chunks, so that replies share them and an append does
// not move them; a short value, or the short end of a long one, is in a string.
class Value {
 public:
  Value() = default;
  ~Value() {
    if (!chunks_.empty()) leave_chunks();
  }
  Value(Value&&) = default;
  Value& operator=(Value&&) = delete;

  std::size_t size() const { return chunk_bytes_ + end_.size(); }
  void set(std::string&& text, const LooseBytesPtr& loose);
  void append(std::string&& text, const LooseBytesPtr& loose);
  bool operator==(std::string_view text) const;
  // The whole value. If it is in several pieces they are put together in `room`.
  std::string_view whole(std::string& room) const {
    return chunks_.empty() ? std::string_view(end_) : put_together(room);
  }

  // The whole value if it is short, else some of its first bytes, without putting pieces together.
  std::string_view beginning() const { return chunks_.empty() ? std::string_view(end_) : chunks_.front()->text(); }

  const std::vector<ChunkPtr>& chunks() const { return chunks_; }
  std::string_view end() const { return end_; }

 private:
  std::string_view put_together(std::string& room) const;
  void leave_chunks();
  void add_chunk(std::string&& text, const LooseBytesPtr& loose);

  std::vector<ChunkPtr> chunks_;
  std::size_t chunk_bytes_ = 0;
  std::string end_;
};

}  // namespace elastic::store
