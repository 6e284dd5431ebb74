// Stacks of a job's workers: which nodes the service asks, and who gets the answer.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "rendezvous/transport/service_test_support.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::transport;
using namespace elastic::protocol;
using Kind = OrderAnswered::Kind;

namespace {

constexpr const char* kGroups = R"({"groups":[{"of":"worker","frames":[{"function":"wait","file":"a.py","line":3}],)"
                                R"("members":[{"rank":0,"pid":7}]}]})";

// A service with one job of two nodes, whose workers run.
struct Running : transport::testing::Served {
  Running() {
    for (AgentId agent = 1; agent <= 2; ++agent)
      sessions.push_back(join("train", agent, coordinator::testing::job_terms(2, 2)));
    for (const ConnectionId session : sessions) {
      if (const auto* prepare = peers.at(session).last<PrepareRound>();
          prepare != nullptr && prepare->place.node_rank == 0) {
        say(session, StoreIsOpen{0, {"h", 1}});
      }
    }
    for (const ConnectionId session : sessions) REQUIRE(peers.at(session).last<RunWorkers>() != nullptr);
  }
  // What the effects answer to this ticket; they are carried out, too.
  std::vector<StacksAnswered> answers(ServiceEffects effects) {
    std::vector<StacksAnswered> found;
    for (const ServiceEffect& effect : effects) {
      if (const auto* answer = std::get_if<StacksAnswered>(&effect)) found.push_back(*answer);
    }
    carry(std::move(effects));
    return found;
  }
  std::vector<StacksAnswered> ask(StacksDesk::Ticket ticket, const std::string& job = "") {
    return answers(service.on_event(StacksAsked{job, ticket}, now_ms));
  }
  std::vector<StacksAnswered> tell(ConnectionId id, const NodeStacks& told) {
    ByteString bytes;
    peers.at(id).session.send(told, bytes);
    return answers(service.on_event(ConnectionRead{id, bytes}, now_ms));
  }
  std::vector<StacksAnswered> at(std::int64_t at_ms) {
    now_ms = at_ms;
    return answers(service.on_event(ServiceTime{}, now_ms));
  }
  std::vector<ConnectionId> sessions;
};

}  // namespace

TEST_CASE("all nodes of the job are asked, and their answers come as one document") {
  Running served;
  CHECK(served.ask(5).empty());
  for (const ConnectionId session : served.sessions) {
    const auto* wanted = served.peers.at(session).last<StacksWanted>();
    REQUIRE(wanted != nullptr);
    CHECK(wanted->collection == 1);
  }
  CHECK(served.ask(6, "train").empty());
  CHECK(served.tell(served.sessions[0], {1, kGroups}).empty());
  const auto answers = served.tell(served.sessions[1], {1, "", "it has no workers now"});
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].tickets == std::vector<StacksDesk::Ticket>{5, 6});
  CHECK(answers[0].kind == Kind::kAccepted);
  CHECK(answers[0].text.contains(R"("function":"wait")"));
  CHECK(answers[0].text.contains(R"({"name":"node2","problem":"it has no workers now"})"));
}

TEST_CASE("a node that says nothing and one that is gone cost their own stacks only") {
  Running served;
  served.ask(1);
  CHECK(served.service.next_deadline_ms().value() <= StacksDesk::kAnswerMs);
  served.gone(served.sessions[1]);
  const auto answers = served.at(StacksDesk::kAnswerMs);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].text.contains("node1\",\"problem\":\"it did not answer within 15 s"));
  CHECK(answers[0].text.contains("node2\",\"problem\":\"its connection ended before it had answered"));
}

TEST_CASE("the job's coordinator, and its recording, hear nothing of stacks") {
  Running served;
  int events = 0;
  served.service.recorder = [&](const std::string&, const Event&, std::int64_t) { ++events; };
  served.ask(1);
  served.tell(served.sessions[0], {1, kGroups});
  CHECK(events == 0);
}

TEST_CASE("a job that is not here is answered with the reason") {
  Running served;
  const auto unknown = served.ask(1, "other");
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0].kind == Kind::kUnknown);
  CHECK(unknown[0].text == "there is no job other here; the jobs here are train; name one with --rdzv-id");
}
