#include "health/timers/timer_table.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "health/timers/limits.h"

using namespace elastic::timers;

namespace {

constexpr std::int64_t kWallMs = 1'764'269'873'000;

// A table whose clock stands at 0 while the host's stands at kWallMs.
struct Table : TimerTable {
  bool set(std::int64_t pid, const std::string& scope, std::int64_t after_ms, int signal = 9) {
    return note_request({.pid = pid, .scope = scope, .expires_ms = kWallMs + after_ms, .signal = signal}, kWallMs, 0);
  }
  void release(std::int64_t pid, const std::string& scope) { note_request({.pid = pid, .scope = scope}, kWallMs, 0); }
};

using All = std::vector<Expired>;

}  // namespace

TEST_CASE("a timer that is not released expires at its time, once") {
  Table table;
  CHECK(!table.next_ms());
  table.set(7, "load", 100);
  CHECK(table.next_ms() == 100);
  CHECK(table.take_expired(99).empty());
  CHECK(table.take_expired(100) == All{{.pid = 7, .scope = "load", .due_ms = 100, .signal = 9}});
  CHECK(table.take_expired(1000).empty());
  CHECK(!table.next_ms());
}

TEST_CASE("a timer that is released in time does not expire") {
  Table table;
  table.set(7, "load", 100);
  table.release(7, "load");
  CHECK(!table.next_ms());
  CHECK(table.take_expired(1000).empty());
  table.release(7, "load");
}

TEST_CASE("a scope that is set again has its new time alone") {
  Table table;
  table.set(7, "step", 100);
  table.set(7, "step", 300);
  CHECK(table.next_ms() == 300);
  CHECK(table.take_expired(299).empty());
  CHECK(table.take_expired(300).size() == 1);
}

TEST_CASE("scopes of one process, and processes with one scope, have timers of their own") {
  Table table;
  table.set(7, "outer", 500);
  table.set(7, "inner", 100);
  table.set(8, "inner", 200);
  table.release(7, "inner");
  CHECK(table.take_expired(499) == All{{.pid = 8, .scope = "inner", .due_ms = 200, .signal = 9}});
  CHECK(table.take_expired(500) == All{{.pid = 7, .scope = "outer", .due_ms = 500, .signal = 9}});
}

TEST_CASE("of several timers of a process the first one that wants a signal counts, and all of them are gone") {
  Table table;
  table.set(7, "a", 100, 0);
  table.set(7, "b", 300, 15);
  table.set(7, "c", 200, 9);
  table.set(7, "d", 400, 2);
  table.set(7, "later", 5000);
  table.set(8, "x", 250, 0);
  table.set(8, "y", 150, 0);
  CHECK(table.take_expired(1000) == All{{.pid = 7, .scope = "c", .due_ms = 200, .signal = 9},
                                        {.pid = 8, .scope = "y", .due_ms = 150, .signal = 0}});
  CHECK(table.size() == 0);
}

TEST_CASE("a clock of the host that is set changes no timer") {
  Table table;
  table.note_request({.pid = 7, .scope = "load", .expires_ms = kWallMs + 100, .signal = 9}, kWallMs, 5000);
  constexpr std::int64_t kDayMs = 24 * 3'600'000;
  table.note_request({.pid = 8, .scope = "load", .expires_ms = kWallMs + kDayMs + 300, .signal = 9}, kWallMs + kDayMs,
                     5000);
  CHECK(table.next_ms() == 5100);
  CHECK(table.take_expired(5299).size() == 1);
  CHECK(table.take_expired(5300).size() == 1);
}

TEST_CASE("a timer whose time is over when it comes expires at once") {
  Table table;
  table.set(7, "load", -50);
  CHECK(table.take_expired(0) == All{{.pid = 7, .scope = "load", .due_ms = -50, .signal = 9}});
}

TEST_CASE("timers are bounded in number: a further one is passed over, and those that are there go on") {
  Table table;
  for (std::size_t i = 0; i < elastic::limits::kFileTimers; ++i) CHECK(table.set(7, std::to_string(i), 100));
  CHECK(!table.set(7, "one more", 50));
  CHECK(!table.set(8, "one more", 50));
  CHECK(table.set(7, "0", 200));
  CHECK(table.next_ms() == 100);
  table.release(7, "1");
  CHECK(table.set(8, "one more", 50));
  CHECK(table.next_ms() == 50);
}

TEST_CASE("it is known which processes have timers") {
  Table table;
  table.set(7, "", 100);
  table.set(9, "x", 100);
  CHECK(table.has(7));
  CHECK(!table.has(8));
  CHECK(table.has(9));
  CHECK(!table.has(10));
  table.release(7, "");
  CHECK(!table.has(7));
  table.clear();
  CHECK(!table.has(9));
}
