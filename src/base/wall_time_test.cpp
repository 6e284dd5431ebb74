#include "src/base/wall_time.h"

#include <doctest/doctest.h>

using namespace elastic;

TEST_CASE("wall times are shown in the node's offset, across days, leap years and the end of a year") {
  CHECK(wall_time(0, 0) == "1970-01-01 00:00:00");
  CHECK(wall_time(1'795'279'603'999, 0, '_') == "2026-11-21_16:46:43");
  CHECK(wall_time(1'795'279'603'000, 5 * 3600 + 1800) == "2026-11-21 22:16:43");
  CHECK(wall_time(1'709'251'199'000, 0) == "2024-02-29 23:59:59");
  CHECK(wall_time(1'709'251'199'000, 1) == "2024-03-01 00:00:00");
  CHECK(wall_time(4'107'542'399'000, 0) == "2100-02-28 23:59:59");
  CHECK(wall_time(4'107'542'400'000, 0) == "2100-03-01 00:00:00");
  CHECK(wall_time(1'767'225'599'999, 0) == "2025-12-31 23:59:59");
  CHECK(wall_time(1'767'225'599'999, 3600) == "2026-01-01 00:59:59");
  CHECK(wall_time(0, -3600) == "1969-12-31 23:00:00");
  CHECK(wall_time(-1, 0) == "1969-12-31 23:59:59");
  CHECK(wall_time_ms(1'795'279'603'045, 0) == "2026-11-21 16:46:43.045");
}

TEST_CASE("a moment for programs is UTC with microseconds, before 1970 too") {
  CHECK(utc_time_us(1'795'279'603'045'678) == "2026-11-21T16:46:43.045678Z");
  CHECK(utc_time_us(-1) == "1969-12-31T23:59:59.999999Z");
}

TEST_CASE("wall times that no calendar has are cut to the nearest that it has") {
  CHECK(wall_time(INT64_MAX, 86400) == "9999-12-31 23:59:59");
  CHECK(wall_time(INT64_MIN, -86400) == "0000-01-01 00:00:00");
}

TEST_CASE("offsets from UTC and spans of time are told as people read them") {
  CHECK(utc_offset_text(0) == "UTC");
  CHECK(utc_offset_text(7200) == "UTC+02:00");
  CHECK(utc_offset_text(-12600) == "UTC-03:30");
  CHECK(span_text(-5) == "0.000 s");
  CHECK(span_text(412) == "0.412 s");
  CHECK(span_text(41'260) == "41.2 s");
  CHECK(span_text(307'000) == "5 min 7 s");
  CHECK(span_text(3 * 3'600'000 + 12 * 60'000) == "3 h 12 min");
}
