#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

// Small readers of lines that scripts print. All are linear in the length of the line.
namespace elastic::progress {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// A place in a line.
class Scanner {
 public:
  explicit Scanner(std::string_view text, std::size_t at = 0) : text_(text), at_(at) {}

  std::size_t at() const { return at_; }
  std::string_view rest() const { return text_.substr(at_); }
  Scanner& blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    return *this;
  }
  // Passes over this text if it comes next.
  bool skip(std::string_view what) {
    if (!rest().starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  // Passes over digits; nothing if there is none, or they are more than 18.
  std::optional<std::int64_t> integer() {
    std::int64_t value = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
      if (at_ - begin >= 18) return {};
      value = value * 10 + (text_[at_] - '0');
    }
    if (at_ == begin) return {};
    return value;
  }
  // Passes over digits with or without a fraction; in thousandths of `unit`, a power of ten of 1000 at least.
  std::optional<std::int64_t> decimal(std::int64_t unit) {
    const auto whole = integer();
    if (!whole || *whole > INT64_MAX / unit / 2) return {};
    std::int64_t value = *whole * unit;
    if (!skip(".")) return value;
    for (std::int64_t digit = unit / 10; at_ < text_.size() && is_digit(text_[at_]); ++at_, digit /= 10) {
      value += digit * (text_[at_] - '0');
    }
    return value;
  }

 private:
  std::string_view text_;
  std::size_t at_;
};

// The place after a word that no letter or digit precedes; nothing if it is not there.
inline std::optional<Scanner> after_word(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    if (at == 0 || !(is_letter(line[at - 1]) || is_digit(line[at - 1]))) return Scanner(line, at + word.size());
  }
  return {};
}

// FNV-1a, for tables that live as long as a rank.
constexpr std::uint64_t kHashBegin = 14695981039346656037ULL;
constexpr std::uint64_t hash_with(std::uint64_t hash, char c) {
  return (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
}
constexpr std::uint64_t hash_with(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = hash_with(hash, c);
  return hash;
}

}  // namespace elastic::progress
