#pragma once

#include <cstdint>
#include <string>

namespace elastic {

// The wall clock's time at `unix_ms` (milliseconds since 1970), `utc_offset_s` seconds east of UTC,
// with `separator` between date and time: "2026-01-02_03:04:05". Years before 0 and after 9999 are
// cut to them.
std::string wall_time(std::int64_t unix_ms, int utc_offset_s, char separator = ' ');

// The same with milliseconds: "2026-01-02 03:04:05.678".
std::string wall_time_ms(std::int64_t unix_ms, int utc_offset_s);

// `unix_us` (microseconds since 1970) by RFC 3339: "2026-01-02T03:04:05.678901Z".
std::string utc_time_us(std::int64_t unix_us);

// "UTC", "UTC+02:00"
std::string utc_offset_text(int utc_offset_s);

// A span of time for people: "0.412 s", "41.2 s", "5 min 7 s", "3 h 12 min". Negative spans
// count as 0.
std::string span_text(std::int64_t span_ms);

}  // namespace elastic
