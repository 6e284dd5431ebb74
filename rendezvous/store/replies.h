#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/codec.h"
#include "rendezvous/store/value.h"

namespace elastic::store {

// The replies to one client that the kernel has not got yet, in their order. They share long values with the store: a
// value that is replaced or deleted meanwhile stays unchanged here.
class Replies {
 public:
  // Pieces that are to be sent without a copy; the chunks keep them in memory.
  struct Slice {
    std::vector<ChunkPtr> chunks;
    std::vector<std::string_view> pieces;
  };

  // The last piece, to which short replies are appended.
  std::string& end() { return end_; }
  const std::string& end() const { return end_; }
  // Appends a text with its length.
  void put(const Value& value) {
    if (!value.chunks().empty()) return put_long(value);
    put_string(end_, value.end());
  }
  void put(std::string&& text, const LooseBytesPtr& loose);
  // To be called between the parts of a reply that may have many, so that it is never one large piece.
  void cut_if_long(const LooseBytesPtr& loose);

  bool empty() const { return !has_chunks() && end_.empty(); }
  bool has_chunks() const { return first_ < chunks_.size(); }
  std::size_t size() const { return chunk_bytes_ + end_.size(); }
  // About how many bytes of memory only replies hold.
  std::size_t loose_bytes() const;

  // Takes so many bytes from the front, or all if there are fewer.
  Slice take_bytes(std::size_t most, const LooseBytesPtr& loose);
  // A copy of all replies.
  std::string whole() const;

 private:
  void put_long(const Value& value);
  void add(ChunkPtr chunk);
  // Turns the last piece into a chunk.
  void cut(const LooseBytesPtr& loose);
  void forget_taken();

  std::vector<ChunkPtr> chunks_;  // those before first_ were taken and are null
  std::size_t first_ = 0;
  std::size_t taken_of_first_ = 0;
  std::size_t chunk_bytes_ = 0;  // of the chunks that are not taken yet
  std::string end_;              // the last piece, after the chunks
};

}  // namespace elastic::store
