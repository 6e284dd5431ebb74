#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <string>

namespace elastic::health {

// What has been tried, or as a clause why it did not work: "the connection was reset".
template <class T>
using Attempt = std::expected<T, std::string>;

// The end of patience, by the monotonic clock.
class Deadline {
 public:
  explicit Deadline(std::int64_t after_ms)
      : after_ms_(after_ms), end_(std::chrono::steady_clock::now() + std::chrono::milliseconds(after_ms)) {}

  // As poll() takes it: rounded up, 0 when it has passed.
  int left_ms() const;
  bool has_passed() const { return left_ms() == 0; }
  // All of the patience there was: "5 s".
  std::string span() const;

 private:
  std::int64_t after_ms_;
  std::chrono::steady_clock::time_point end_;
};

// What an errno value of a TCP connection means, as a clause: "it refused the connection".
std::string connection_failure(int error_number);

}  // namespace elastic::health
