#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string_view>

namespace elastic::simulation {

// All that happens in a simulation, in order: as a hash, and as lines if there is a reader.
class Trace {
 public:
  // With a null reader only the hash is made.
  explicit Trace(std::ostream* reader) : reader_(reader) {}

  void add(std::uint64_t number) {
    hash_ = (hash_ ^ number) * 0x9FB21C651E98DF25ULL;
    hash_ ^= hash_ >> 29;
  }
  void add(std::span<const std::uint8_t> bytes);
  void add(std::string_view text);
  std::uint64_t hash() const { return hash_; }

  // Whether lines are wanted. Making them costs more than all else.
  bool is_read() const { return reader_ != nullptr; }
  void line(std::int64_t now_ms, std::string_view text);

 private:
  std::ostream* reader_;
  std::uint64_t hash_ = 0x243F6A8885A308D3ULL;
};

}  // namespace elastic::simulation
