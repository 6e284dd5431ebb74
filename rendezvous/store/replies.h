#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/codec.h"
#include "rendezvous/store/value.h"

namespace elastic::store {

// The replies to one client that are not with the kernel yet, in their order. Long values are in them as they lie in
// the store: one that is replaced or deleted meanwhile stays here as it was.
class Replies {
 public:
  // What is to be sent from where it lies; the chunks keep it there.
  struct Slice {
    std::vector<ChunkPtr> chunks;
    std::vector<std::string_view> pieces;
  };

  // The end of them, to which short replies are appended.
  std::string& end() { return end_; }
  const std::string& end() const { return end_; }
  // Appends a text with its length.
  void put(const Value& value) {
    if (!value.chunks().empty()) return put_long(value);
    put_string(end_, value.end());
  }
  void put(std::string&& text, const LooseBytesPtr& loose);
  // To be called between the parts of a reply that may have many, so that it never lies in one piece.
  void cut_if_long(const LooseBytesPtr& loose);

  bool empty() const { return !has_chunks() && end_.empty(); }
  bool has_chunks() const { return first_ < chunks_.size(); }
  std::size_t size() const { return chunk_bytes_ + end_.size(); }
  // Memory that nothing but replies needs, about.
  std::size_t loose_bytes() const;

  // Takes so many bytes from the front, or all if there are fewer.
  Slice take(std::size_t most, const LooseBytesPtr& loose);
  // A copy of all.
  std::string whole() const;

 private:
  void put_long(const Value& value);
  void add(ChunkPtr chunk);
  // Makes the end a chunk.
  void cut(const LooseBytesPtr& loose);
  void forget_taken();

  std::vector<ChunkPtr> chunks_;  // before `first_`: null, taken
  std::size_t first_ = 0;
  std::size_t taken_of_first_ = 0;
  std::size_t chunk_bytes_ = 0;  // not taken yet
  std::string end_;              // behind the chunks
};

}  // namespace elastic::store
