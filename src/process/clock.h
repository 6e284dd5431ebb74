#pragma once

#include <cstdint>
#include <ctime>

// The clocks that processes of one host share, in milliseconds.
namespace elastic::process {

inline std::int64_t clock_ms(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// This clock stands still while the machine is suspended, as the loop's does.
inline std::int64_t monotonic_ms() { return clock_ms(CLOCK_MONOTONIC); }

// This clock goes on while the machine is suspended: leases are judged by it.
inline std::int64_t boottime_ms() { return clock_ms(CLOCK_BOOTTIME); }

// Unix time.
inline std::int64_t wall_clock_ms() { return clock_ms(CLOCK_REALTIME); }

// The offset of local time from UTC now, in seconds, east positive.
inline int utc_offset_s() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  return localtime_r(&now, &local) == nullptr ? 0 : static_cast<int>(local.tm_gmtoff);
}

}  // namespace elastic::process
