#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <string>

namespace elastic::health {

// A result, or as a clause why there is none: "the connection was reset".
template <class T>
using Attempt = std::expected<T, std::string>;

// A moment of the monotonic clock until which something is waited for.
class Deadline {
 public:
  explicit Deadline(std::int64_t after_ms)
      : after_ms_(after_ms), end_(std::chrono::steady_clock::now() + std::chrono::milliseconds(after_ms)) {}

  // The milliseconds that are left, as poll() takes them: rounded up; 0 when the deadline has passed.
  int left_ms() const;
  bool has_passed() const { return left_ms() == 0; }
  // The whole time that was allowed: "5 s".
  std::string span() const;

 private:
  std::int64_t after_ms_;
  std::chrono::steady_clock::time_point end_;
};

// What an errno value of a TCP connection means, as a clause: "it refused the connection".
std::string connection_failure(int error_number);

}  // namespace elastic::health
