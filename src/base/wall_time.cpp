#include "src/base/wall_time.h"

#include <algorithm>
#include <chrono>

#include "src/base/text.h"

namespace elastic {
namespace {

constexpr std::int64_t kSecondsPerDay = 24 * 3600;
constexpr std::int64_t kFirstMs = -62'167'219'200'000;  // 0000-01-01
constexpr std::int64_t kLastMs = 253'402'300'799'999;   // 9999-12-31 23:59:59.999

}  // namespace

std::string wall_time(std::int64_t unix_ms, int utc_offset_s, char separator) {
  const std::int64_t local_ms =
      std::clamp(std::clamp(unix_ms, kFirstMs, kLastMs) + std::int64_t{utc_offset_s} * 1000, kFirstMs, kLastMs);
  // Rounded down, also before 1970.
  const std::int64_t seconds = (local_ms - kFirstMs) / 1000 + kFirstMs / 1000;
  const std::int64_t of_day = ((seconds % kSecondsPerDay) + kSecondsPerDay) % kSecondsPerDay;
  const std::chrono::year_month_day date(std::chrono::sys_days(std::chrono::days((seconds - of_day) / kSecondsPerDay)));
  return format("{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}", int{date.year()}, unsigned{date.month()}, unsigned{date.day()},
                separator, of_day / 3600, of_day / 60 % 60, of_day % 60);
}

std::string wall_time_ms(std::int64_t unix_ms, int utc_offset_s) {
  return format("{}.{:03}", wall_time(unix_ms, utc_offset_s), ((unix_ms % 1000) + 1000) % 1000);
}

std::string utc_time_us(std::int64_t unix_us) {
  const std::int64_t fraction = ((unix_us % 1'000'000) + 1'000'000) % 1'000'000;
  return format("{}.{:06}Z", wall_time((unix_us - fraction) / 1000, 0, 'T'), fraction);
}

std::string utc_offset_text(int utc_offset_s) {
  if (utc_offset_s == 0) return "UTC";
  const std::int64_t size = utc_offset_s < 0 ? -std::int64_t{utc_offset_s} : utc_offset_s;
  return format("UTC{}{:02}:{:02}", utc_offset_s < 0 ? '-' : '+', size / 3600, size / 60 % 60);
}

std::string span_text(std::int64_t span_ms) {
  span_ms = std::max<std::int64_t>(span_ms, 0);
  if (span_ms < 10'000) return format("{}.{:03} s", span_ms / 1000, span_ms % 1000);
  if (span_ms < 100'000) return format("{}.{} s", span_ms / 1000, span_ms / 100 % 10);
  const std::int64_t seconds = span_ms / 1000;
  if (seconds < 3600) return format("{} min {} s", seconds / 60, seconds % 60);
  return format("{} h {} min", seconds / 3600, seconds / 60 % 60);
}

}  // namespace elastic
