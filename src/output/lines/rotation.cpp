#include "src/output/lines/rotation.h"

#include <utility>

#include "src/base/check.h"

namespace elastic::output {

Rotation::Rotation(std::uint64_t max_bytes, std::size_t max_carry_bytes)
    : max_bytes_(max_bytes), max_carry_bytes_(max_carry_bytes) {}

Rotation::Step Rotation::next(std::string_view bytes) {
  ELASTIC_CHECK(!bytes.empty());
  if (max_bytes_ == 0) return {.write = bytes.size()};
  const std::uint64_t room = max_bytes_ - size_;
  if (bytes.size() <= room) {
    wrote(bytes);
    return {.write = bytes.size()};
  }
  const auto fits = static_cast<std::size_t>(room);
  const std::size_t end = bytes.substr(0, fits).rfind('\n');
  if (end != std::string_view::npos) return full(end + 1, {});
  if (line_bytes_ == size_) return full(fits, {});  // the file contains only the beginning of this line
  if (line_bytes_ > max_carry_bytes_) return full(fits, {});
  return full(0, std::move(line_));
}

// The step after which the file is full: `write` more bytes go to it.
Rotation::Step Rotation::full(std::size_t write, std::string carry) {
  size_ = line_bytes_ = carry.size();
  line_ = carry;
  return {.write = write, .rotate = true, .carry = std::move(carry)};
}

void Rotation::wrote(std::string_view bytes) {
  size_ += bytes.size();
  const std::size_t end = bytes.rfind('\n');
  if (end != std::string_view::npos) {
    bytes.remove_prefix(end + 1);
    line_bytes_ = 0;
  }
  if (line_bytes_ == 0)
    std::string().swap(line_);  // frees the memory, for few of thousands of streams are in the middle of a line
  line_bytes_ += bytes.size();
  if (line_bytes_ <= max_carry_bytes_) {
    line_.append(bytes);
  } else {
    std::string().swap(line_);
  }
}

}  // namespace elastic::output
