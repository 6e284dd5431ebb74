#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string_view>

namespace elastic::simulation {

// What has happened, in order: as a hash always, for people where somebody reads it.
class Trace {
 public:
  // Null: the hash alone.
  explicit Trace(std::ostream* reader) : reader_(reader) {}

  void add(std::uint64_t number) {
    hash_ = (hash_ ^ number) * 0x9FB21C651E98DF25ULL;
    hash_ ^= hash_ >> 29;
  }
  void add(std::span<const std::uint8_t> bytes);
  void add(std::string_view text);
  std::uint64_t hash() const { return hash_; }

  // Whether lines are of use: they cost more than all else.
  bool is_read() const { return reader_ != nullptr; }
  void line(std::int64_t now_ms, std::string_view text);

 private:
  std::ostream* reader_;
  std::uint64_t hash_ = 0x243F6A8885A308D3ULL;
};

}  // namespace elastic::simulation
