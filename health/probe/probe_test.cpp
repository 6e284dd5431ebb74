#include "health/probe/probe.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "health/messages/messages_test_support.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

using namespace elastic;
using namespace elastic::health;

namespace {

// A probe in a thread, and the other end of its channel.
class Probe {
 public:
  explicit Probe(const ProbeSettings& settings = {}) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    channel_ = UniqueFd(ends[0]);
    status_ =
        std::async(std::launch::async, [settings, own = UniqueFd(ends[1])] { return run_probe(own.get(), settings); });
  }
  ~Probe() { channel_ = UniqueFd(); }

  const SelfResult& self() {
    if (!self_) self_ = read_self_result(read_line());
    REQUIRE(self_);
    return *self_;
  }
  void write(const std::string& text) {
    REQUIRE(send(channel_.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
  }
  std::string read_line() {
    std::string line;
    for (char byte = 0; recv(channel_.get(), &byte, 1, 0) == 1 && byte != '\n';) line += byte;
    return line;
  }
  PairResults answer() {
    const auto answer = read_pair_results(read_line());
    REQUIRE(answer);
    return *answer;
  }
  RingResult ring_result() {
    const auto result = read_ring_result(read_line());
    REQUIRE(result);
    return *result;
  }
  std::vector<PairResult> results() { return answer().tests; }
  int status_after_close() {
    channel_ = UniqueFd();
    return status_.get();
  }
  int status() { return status_.get(); }

 private:
  UniqueFd channel_;
  std::future<int> status_;
  std::optional<SelfResult> self_;
};

PairOrder order_to(int rank, Probe& probe, int after = 0) {
  return {.with = rank, .at = {"127.0.0.1"}, .port = probe.self().port, .key = probe.self().key, .after = after};
}

std::string line_of(int rank, std::vector<PairOrder> tests) {
  return text_of(PairOrders{.rank = rank, .tests = std::move(tests)}) + "\n";
}

// The order to one probe of a ring of all probes, in which node ranks are places.
std::string ring_line(int place, int members, std::deque<Probe>& probes) {
  RingOrder order{.rank = place, .place = place, .members = members};
  const auto neighbour = [&](int low_place, int with) {
    const bool closes_odd = low_place == members - 1 && members % 2 == 1;
    const int turn = closes_odd ? 2 : members == 2 ? 0 : low_place % 2;
    return order_to(with, probes[static_cast<std::size_t>(with)], turn);
  };
  const int before = (place + members - 1) % members;
  order.previous = neighbour(before, before);
  order.next = neighbour(place, (place + 1) % members);
  return text_of(order) + "\n";
}

void check_passed(const PairResult& result, int with) {
  CHECK(result.with == with);
  CHECK_MESSAGE(result.ms.has_value(), result.why_not);
  CHECK(result.why_not.empty());
  CHECK(result.latency_us.value_or(0) > 0);
  CHECK(result.clock_ms.has_value());
}

}  // namespace

TEST_CASE("a probe looks at its host first, and ends when its channel does") {
  Probe probe;
  const SelfResult& self = probe.self();
  CHECK(self.port != 0);
  CHECK(self.key.size() == 32);
  CHECK(self.compute_ms.value_or(0) > 0);
  CHECK(self.memory_gbps.value_or(0) > 0);
  CHECK(self.unhealthy == "");
  CHECK(probe.status_after_close() == 0);
}

TEST_CASE("two probes meet, in each phase anew, and both say that it went well") {
  Probe low, high;
  for (int phase = 0; phase < 2; ++phase) {
    low.write(line_of(2, {order_to(7, high)}));
    high.write(line_of(7, {order_to(2, low)}));
    const auto of_low = low.results(), of_high = high.results();
    REQUIRE(of_low.size() == 1);
    REQUIRE(of_high.size() == 1);
    check_passed(of_low[0], 7);
    check_passed(of_high[0], 2);
  }
}

TEST_CASE("three probes meet in turn, in whichever order they are told to") {
  for (const std::vector<std::size_t>& first : {std::vector<std::size_t>{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    std::vector<Probe> probes(3);
    const std::vector<std::pair<std::size_t, std::size_t>> tests = {{0, 1}, {0, 2}, {1, 2}};
    for (const std::size_t rank : first) {
      std::vector<PairOrder> own;
      for (std::size_t i = 0; i < tests.size(); ++i) {
        const auto [low, high] = tests[i];
        if (low != rank && high != rank) continue;
        const std::size_t other = low == rank ? high : low;
        own.push_back(order_to(static_cast<int>(other), probes[other], static_cast<int>(i)));
      }
      probes[rank].write(line_of(static_cast<int>(rank), own));
    }
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const auto results = probes[rank].results();
      REQUIRE(results.size() == 2);
      check_passed(results[0], rank == 0 ? 1 : 0);
      check_passed(results[1], rank == 2 ? 1 : 2);
    }
  }
}

TEST_CASE("a test that fails leaves the next its turn") {
  Probe low({.connect_ms = 50, .test_ms = 60000}), high;
  low.write(line_of(0, {{.with = 4}, order_to(1, high, 1)}));
  high.write(line_of(1, {order_to(1, low), order_to(0, low, 1)}));
  const auto of_low = low.results(), of_high = high.results();
  REQUIRE(of_low.size() == 2);
  CHECK(of_low[0].with == 4);
  CHECK(!of_low[0].ms);
  CHECK(of_low[0].why_not == format("no connection within 0.05 s (port {})", low.self().port));
  check_passed(of_low[1], 1);
  REQUIRE(of_high.size() == 2);
  CHECK(of_high[0].why_not == "a node cannot test with itself");
  check_passed(of_high[1], 0);
}

TEST_CASE("who waits for a later test has patience for those before it") {
  Probe probe({.connect_ms = 20, .busy_ms = 30});
  const std::uint16_t port = probe.self().port;
  probe.write(line_of(0, {{.with = 1, .after = 2}}));
  CHECK(probe.results().at(0).why_not == format("no connection within 0.08 s (port {})", port));
}

TEST_CASE("with MOCK_ERR_RANK a probe makes its tests and reports them as failed; the other end sees nothing of it") {
  Probe low, high({.mock_error = true});
  low.write(line_of(0, {order_to(1, high)}));
  high.write(line_of(1, {order_to(0, low)}));
  check_passed(low.results().at(0), 1);
  CHECK(high.results() == std::vector<PairResult>{{.with = 0, .why_not = "MOCK_ERR_RANK"}});
}

TEST_CASE("probes of 2 to 5 nodes make a ring, in whichever order they are told to") {
  for (const int members : {2, 3, 4, 5}) {
    for (const bool reversed : {false, true}) {
      CAPTURE(members);
      std::deque<Probe> probes(static_cast<std::size_t>(members));
      for (int i = 0; i < members; ++i) {
        const int place = reversed ? members - 1 - i : i;
        probes[static_cast<std::size_t>(place)].write(ring_line(place, members, probes));
      }
      for (Probe& probe : probes) {
        const RingResult result = probe.ring_result();
        CHECK_MESSAGE(result.ms.value_or(0) > 0, result.why_not);
      }
      // The second ring must not be disturbed by the first.
      probes[0].write(line_of(0, {order_to(1, probes[1])}));
      probes[1].write(line_of(1, {order_to(0, probes[0])}));
      check_passed(probes[0].results().at(0), 1);
      check_passed(probes[1].results().at(0), 0);
    }
  }
}

TEST_CASE("where a member of a ring is gone its neighbours say so, and the others that it is not their fault") {
  // The node that connects to the missing one is refused at once; the node that waits for it times out.
  std::deque<Probe> probes;
  probes.emplace_back(ProbeSettings{.connect_ms = 200, .busy_ms = 60000});
  for (int place = 1; place < 4; ++place) probes.emplace_back(ProbeSettings{.connect_ms = 60000});
  std::vector<std::string> lines;
  for (int place = 0; place < 4; ++place) lines.push_back(ring_line(place, 4, probes));
  CHECK(probes[1].status_after_close() == 0);
  for (const std::size_t place : {0U, 2U, 3U}) probes[place].write(lines[place]);
  const RingResult zero = probes[0].ring_result(), two = probes[2].ring_result(), three = probes[3].ring_result();
  CHECK(zero.why_not == format("node 1: no connection within 0.2 s (port {})", probes[0].self().port));
  CHECK(!zero.for_others);
  CHECK(two.why_not.starts_with("node 1: it refused the connection (127.0.0.1 port "));
  CHECK(!two.for_others);
  CHECK_MESSAGE(three.for_others, three.why_not);
}

TEST_CASE("a node cannot be its own neighbour") {
  Probe probe;
  RingOrder order{.rank = 3, .previous = order_to(3, probe), .next = order_to(4, probe)};
  probe.write(text_of(order) + "\n");
  CHECK(probe.ring_result() == RingResult{.why_not = "a node cannot be its own neighbour"});
}

TEST_CASE("a probe looks at its host at the end of each phase in which it has a test, and tells what it finds then") {
  int looks = 0;
  Probe low({.look_at_host = [&looks] {
    ++looks;
    return std::vector<Finding>{{looks == 1 ? Severity::kFatal : Severity::kWarning, format("look {}", looks)}};
  }});
  Probe high;
  CHECK(low.self().findings == std::vector<Finding>{{Severity::kFatal, "look 1"}});
  CHECK(low.self().unhealthy == "look 1");
  low.write(line_of(0, {}));
  CHECK(low.answer() == PairResults{});
  low.write(line_of(0, {order_to(1, high)}));
  high.write(line_of(1, {order_to(0, low)}));
  CHECK(low.answer().findings == std::vector<Finding>{{Severity::kWarning, "look 2"}});
  CHECK(high.answer().findings.empty());
}

TEST_CASE("a node with an external probe and one without say so at once") {
  Probe with({.external = {.command = "exit 0"}}), without;
  REQUIRE(with.self().master_port != 0);
  CHECK(without.self().master_port == 0);
  PairOrder to_with = order_to(0, with);
  to_with.master_port = with.self().master_port;
  with.write(line_of(0, {order_to(1, without)}));
  without.write(line_of(1, {to_with}));
  CHECK(with.results() == std::vector<PairResult>{{.with = 1, .why_not = "the other node has no --check-probe"}});
  CHECK(without.results() ==
        std::vector<PairResult>{{.with = 0, .why_not = "the other node has a --check-probe, and this one has none"}});
}

TEST_CASE("a line that is no order is answered with no results, and the next is served") {
  Probe probe;
  probe.self();
  probe.write("{}\n<html>\n" + line_of(3, {}) + "\n");
  for (int line = 0; line < 4; ++line) CHECK(probe.read_line() == R"({"tests":[]})");
  CHECK(probe.status_after_close() == 0);
}

TEST_CASE("a line without an end is no reason to take all memory") {
  Probe probe;
  probe.self();
  const std::string part(4096, 'x');
  for (int i = 0; i < 257; ++i) probe.write(part);
  CHECK(probe.status() == 1);
}

TEST_CASE("a channel that is none ends the probe") { CHECK(run_probe(-1, {}) == 1); }
