#include "health/probe/attempt.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "src/base/result.h"
#include "src/base/text.h"

namespace elastic::health {

int Deadline::left_ms() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

std::string Deadline::span() const { return format("{:g} s", static_cast<double>(after_ms_) / 1000); }

std::string connection_failure(int error_number) {
  switch (error_number) {
    case ECONNREFUSED: return "it refused the connection";
    case ECONNRESET:
    case EPIPE: return "the connection was reset";
    case ETIMEDOUT: return "the connection timed out";
    case EHOSTUNREACH:
    case ENETUNREACH: return "it is unreachable: " + errno_text(error_number);
    default: return "the connection failed: " + errno_text(error_number);
  }
}

}  // namespace elastic::health
