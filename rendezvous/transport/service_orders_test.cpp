// Which job an operator's order is for, and when no job takes one.
#include <doctest/doctest.h>

#include "rendezvous/transport/service_test_support.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::transport;
using namespace elastic::protocol;
using Kind = OrderAnswered::Kind;

namespace {

// A service with a node, node7, in each of these jobs.
struct Jobs : transport::testing::Served {
  explicit Jobs(const std::vector<std::string>& jobs) {
    for (const std::string& job : jobs) join(job, 7, coordinator::testing::job_terms(1, 2));
  }
  OrderAnswered order(const std::string& job, const std::string& node = "node7") {
    std::vector<OrderAnswered> answers;
    for (const ServiceEffect& effect : service.on_event(OrderGiven{job, {.node = node}}, 0)) {
      if (const auto* answer = std::get_if<OrderAnswered>(&effect)) answers.push_back(*answer);
    }
    REQUIRE(answers.size() == 1);
    return answers.front();
  }
};

}  // namespace

TEST_CASE("an order goes to the only job, or to the one that it names") {
  Jobs one({"train"});
  CHECK(one.order("").kind == Kind::kAccepted);
  Jobs two({"train", "eval"});
  CHECK(two.order("eval").kind == Kind::kAccepted);
  CHECK(two.order("train").kind == Kind::kAccepted);
  CHECK(two.order("eval").text.contains("is leaving already"));
}

TEST_CASE("an order for no job that is here is answered with the jobs that are") {
  Jobs none({});
  CHECK(none.order("").kind == Kind::kUnknown);
  CHECK(none.order("").text == "no job is here now");
  CHECK(none.order("train").text == "there is no job train here; no job is here now");
  Jobs two({"train", "eval"});
  CHECK(two.order("").kind == Kind::kUnknown);
  CHECK(two.order("").text == "the jobs here are eval, train; name one with --rdzv-id");
  CHECK(two.order("test").text == "there is no job test here; the jobs here are eval, train; name one with --rdzv-id");
}

TEST_CASE("who records a job gets its orders, refused ones too") {
  Jobs served({"train"});
  std::vector<std::string> nodes;
  served.service.recorder = [&](const std::string&, const Event& event, std::int64_t) {
    if (const auto* order = std::get_if<OperatorOrder>(&event)) nodes.push_back(order->node);
  };
  served.order("", "host8");
  served.order("");
  served.order("eval");
  CHECK(nodes == std::vector<std::string>{"host8", "node7"});
}
