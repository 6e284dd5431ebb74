// Which job an operator's order is for, and when no job takes one.
#include <doctest/doctest.h>

#include "rendezvous/coordinator/coordinator_test_support.h"
#include "rendezvous/coordinator/service.h"
#include "rendezvous/protocol/session.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::protocol;
using Kind = OrderAnswered::Kind;

namespace {

// A service with a node in each of these jobs.
struct Served {
  explicit Served(const std::vector<std::string>& jobs) : service({.random = [this] { return ++random; }}, 0) {
    for (const std::string& job : jobs) join(job);
  }
  void join(const std::string& job) {
    AgentSession session({job, 7}, "", {});
    service.on_event(ConnectionOpened{++connections, {}, "", ""}, 0);
    ByteString bytes = session.begin();
    for (int round_trip = 0; round_trip < 2; ++round_trip) {
      ByteString reply;
      for (const ServiceEffect& effect : service.on_event(ConnectionRead{connections, bytes}, 0)) {
        if (const auto* write = std::get_if<Write>(&effect)) session.receive(write->bytes, reply);
      }
      bytes = reply;
    }
    ByteString joins;
    session.send(NodeJoins{.local_world_size = 1, .agent = 7, .address = "host7", .terms = {1, 2, 1, 0}}, joins);
    service.on_event(ConnectionRead{connections, joins}, 0);
    REQUIRE(service.find(job)->roster().size() == 1);
  }
  OrderAnswered order(const std::string& job, const std::string& node = "host7") {
    std::vector<OrderAnswered> answers;
    for (const ServiceEffect& effect : service.on_event(OrderGiven{job, {.node = node}}, 0)) {
      if (const auto* answer = std::get_if<OrderAnswered>(&effect)) answers.push_back(*answer);
    }
    REQUIRE(answers.size() == 1);
    return answers.front();
  }

  std::uint64_t random = 0;
  ConnectionId connections = 0;
  Service service;
};

}  // namespace

TEST_CASE("an order goes to the only job, or to the one that it names") {
  Served one({"train"});
  CHECK(one.order("").kind == Kind::kAccepted);
  Served two({"train", "eval"});
  CHECK(two.order("eval").kind == Kind::kAccepted);
  CHECK(two.order("train").kind == Kind::kAccepted);
  CHECK(two.order("eval").text.contains("is leaving already"));
}

TEST_CASE("an order for no job that is here is answered with the jobs that are") {
  Served none({});
  CHECK(none.order("").kind == Kind::kUnknown);
  CHECK(none.order("").text == "no job is here now");
  CHECK(none.order("train").text == "there is no job train here; no job is here now");
  Served two({"train", "eval"});
  CHECK(two.order("").kind == Kind::kUnknown);
  CHECK(two.order("").text == "the jobs here are eval, train; name one with --rdzv-id");
  CHECK(two.order("test").text == "there is no job test here; the jobs here are eval, train; name one with --rdzv-id");
}

TEST_CASE("a coordinator that may not act takes no order, and says why") {
  Served served({"train"});
  served.service.on_event(AuthorityIs{locate::Authority::none()}, 0);
  CHECK(served.order("").kind == Kind::kNotNow);
  CHECK(served.order("").text.contains("may not act now"));
  served.service.on_event(Deposed{"host9 has taken its claim over"}, 0);
  CHECK(served.order("train").kind == Kind::kNotNow);
  CHECK(served.order("train").text.contains("host9 has taken its claim over"));
}

TEST_CASE("who records a job gets its orders, refused ones too") {
  Served served({"train"});
  std::vector<std::string> nodes;
  served.service.recorder = [&](const std::string&, const Event& event, std::int64_t) {
    if (const auto* order = std::get_if<OperatorOrder>(&event)) nodes.push_back(order->node);
  };
  served.order("", "host8");
  served.order("");
  served.order("eval");
  CHECK(nodes == std::vector<std::string>{"host8", "host7"});
}
