#include "health/timers/timer_table.h"

#include <doctest/doctest.h>

#include <string>

#include "health/timers/limits.h"
#include "src/base/text.h"

using elastic::timers::read_timer_request;
using elastic::timers::TimerRequest;

namespace {

// As the client of PyTorch 2.15 writes it, by Python's json.dumps().
std::string request(std::string_view pid, std::string_view scope, std::string_view time, std::string_view signal) {
  return elastic::format(R"({{"version": 1, "pid": {}, "scope_id": {}, "expiration_time": {}, "signal": {}}})", pid,
                         scope, time, signal);
}

}  // namespace

TEST_CASE("a timer is set by its process, its scope, its time and its signal") {
  CHECK(read_timer_request(request("4711", R"("train.py#12")", "1764269873.2504", "9")) ==
        TimerRequest{.pid = 4711, .scope = "train.py#12", .expires_ms = 1'764'269'873'250, .signal = 9});
  CHECK(read_timer_request(request("1", R"("")", "0", "15")) ==
        TimerRequest{.pid = 1, .scope = "", .expires_ms = 0, .signal = 15});
  CHECK(read_timer_request(R"({"signal":2,"scope_id":"\u00e9 \"x\"","pid":7,"expiration_time":1,"more":[1]})") ==
        TimerRequest{.pid = 7, .scope = "é \"x\"", .expires_ms = 1000, .signal = 2});
}

TEST_CASE("a time below zero releases a timer") {
  CHECK(read_timer_request(request("4711", R"("load")", "-1", "0")) == TimerRequest{.pid = 4711, .scope = "load"});
  CHECK(read_timer_request(request("4711", R"("load")", "-0.5", "0")) == TimerRequest{.pid = 4711, .scope = "load"});
}

TEST_CASE("a signal of zero or below is none") {
  CHECK(read_timer_request(request("4711", R"("load")", "5", "0"))->signal == 0);
  CHECK(read_timer_request(request("4711", R"("load")", "5", "-9"))->signal == 0);
}

TEST_CASE("a time that is far away is bounded") {
  CHECK(read_timer_request(request("4711", R"("load")", "1e300", "9"))->expires_ms == 253'402'300'799'000);
}

TEST_CASE("what is no request of a timer is passed over") {
  CHECK(!read_timer_request(""));
  CHECK(!read_timer_request("hello"));
  CHECK(!read_timer_request("[]"));
  CHECK(!read_timer_request("{}"));
  CHECK(!read_timer_request(request("0", R"("load")", "5", "9")));
  CHECK(!read_timer_request(request("-4711", R"("load")", "5", "9")));
  CHECK(!read_timer_request(request("4294967297", R"("load")", "5", "9")));
  CHECK(!read_timer_request(request("4711.0", R"("load")", "5", "9")));
  CHECK(!read_timer_request(request("4711", "12", "5", "9")));
  CHECK(!read_timer_request(request("4711", R"("load")", R"("5")", "9")));
  CHECK(!read_timer_request(request("4711", R"("load")", "Infinity", "9")));
  CHECK(!read_timer_request(request("4711", R"("load")", "NaN", "9")));
  CHECK(!read_timer_request(request("4711", R"("load")", "5", "65")));
  CHECK(!read_timer_request(request("4711", R"("load")", "5", "null")));
  CHECK(!read_timer_request(R"({"version": 1, "pid": 4711, "scope_id": "load", "signal": 9})"));
  CHECK(!read_timer_request(request("4711", "[[[[[[]]]]]]", "5", "9")));
  const std::string all = request("4711", R"("load")", "5", "9");
  for (std::size_t size = 0; size < all.size(); ++size) CHECK(!read_timer_request(all.substr(0, size)));
}

TEST_CASE("a request behind a text without a line end counts") {
  const std::string release = request("4711", R"("load")", "-1", "0");
  CHECK(read_timer_request("hello " + release) == read_timer_request(release));
  CHECK(read_timer_request(R"({"version": 1, "pid": )" + release) == read_timer_request(release));
}

TEST_CASE("a line that is longer than any client writes is no request") {
  const std::string scope(elastic::limits::kFileTimerLineBytes, 'x');
  CHECK(!read_timer_request(request("4711", "\"" + scope + "\"", "5", "9")));
}
