// A service whose jobs were begun by an earlier coordinator, or are run by another one.
#include <doctest/doctest.h>

#include <algorithm>

#include "rendezvous/transport/service_test_support.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::transport;
using namespace elastic::protocol;
using coordinator::testing::job_terms;
using transport::testing::Served;

namespace {

constexpr Incarnation kOlder = 77;

// Agent `rank + 1` connects, whose worker runs in a round of so many nodes.
ConnectionId report(Served& served, int rank, int nodes, Term term = 1) {
  const auto agent = static_cast<AgentId>(rank) + 1;
  const ConnectionId id = served.greet({"a", agent, kOlder, term});
  if (served.at(id).closed) return id;
  NodeJoins joins = served.joiner(agent, job_terms(1, 4));
  joins.facts = {.incarnation = kOlder,
                 .term = term,
                 .round = 5,
                 .activity = AgentFacts::Activity::kRunning,
                 .place = {rank, nodes, rank, nodes, rank, nodes},
                 .membership = 4711};
  served.say(id, joins);
  return id;
}

}  // namespace

TEST_CASE("keep-alives of workers are answered when all nodes of their round are back, and not before") {
  Served served;
  const ConnectionId first = report(served, 1, 3);
  report(served, 0, 3);
  served.keep_alive(first);
  served.keep_alive(first);
  CHECK(served.at(first).kept == 0);
  const ConnectionId second = report(served, 2, 3);
  CHECK(served.at(first).kept == 1);  // the last keep-alive is answered, and its lease counts from when it was sent
  CHECK(served.at(second).kept == 0);
  served.keep_alive(second);
  CHECK(served.at(second).kept == 1);
}

TEST_CASE("of two coordinators that take one job over at once one steps down when an agent knows of the other") {
  Served one;
  Served other;
  other.incarnations = 1000;
  // Each coordinator has the whole round as far as it knows: two starts of one agent have met both.
  report(one, 0, 1);
  report(other, 0, 1);
  const Term terms[] = {one.service.find("a")->term(), other.service.find("a")->term()};
  REQUIRE(terms[0] != terms[1]);
  Served& lower = terms[0] < terms[1] ? one : other;
  Served& higher = terms[0] < terms[1] ? other : one;
  // A node of the coordinator with the lower term comes to the other one: it learns the higher term, and nothing else
  // happens.
  const ConnectionId came = report(higher, 3, 4, std::min(terms[0], terms[1]));  // its round went on without it
  CHECK(higher.at(came).session.welcome().term == std::max(terms[0], terms[1]));
  // The same node comes back.
  const ConnectionId back = report(lower, 3, 4, std::max(terms[0], terms[1]));
  CHECK(lower.at(back).error.find("another coordinator has taken over") != std::string::npos);
  CHECK(lower.service.jobs() == 0);
  CHECK(lower.at(1).closed);
  CHECK(higher.service.jobs() == 1);
}

TEST_CASE("an agent that was in another start of the job is let in, whatever term that was at") {
  Served served;
  const ConnectionId first = served.join("a", 1, job_terms(1, 1));
  served.say(first, StoreIsOpen{0, {"h", 1}});
  const ConnectionId late = served.greet({"a", 7, kOlder, 0x12'0000});
  CHECK(served.at(late).welcome);
  CHECK(served.at(late).session.welcome().term > 0x12'0000);
  CHECK(!served.at(first).closed);
}

TEST_CASE("the next coordinator of a job in a process begins above the last, whose term its agents may not know") {
  Served served;
  served.greet({"a", 2, kOlder, 0x12'0000});
  const Term raised = served.service.find("a")->term();
  REQUIRE(raised > 0x12'0000);
  report(served, 0, 1);
  served.time(60'000);
  report(served, 2, 4, 0xffff'0000);
  REQUIRE(served.service.jobs() == 0);
  report(served, 0, 3);
  CHECK(served.service.find("a")->term() > raised);
  // The terms of one incarnation say nothing of another's.
  Served other;
  CHECK(other.at(report(other, 0, 3)).session.welcome().term < raised);
}

TEST_CASE("where a coordinator has stepped down some new nodes begin no round while leases of the other may run") {
  Served served;
  report(served, 0, 1);
  served.time(60'000);
  report(served, 2, 4, 0xffff'0000);
  REQUIRE(served.service.jobs() == 0);
  NodeJoins fresh = served.joiner(9, job_terms(1, 2));
  fresh.rules.last_call_ms = 0;
  const ConnectionId id = served.greet({"a", 9});
  served.say(id, fresh);
  for (std::int64_t ms = 100; ms < LeaseTimes{}.over_ms(); ms += 100) {
    served.time(60'000 + ms);
    CHECK(served.at(id).last<PrepareRound>() == nullptr);
  }
  served.time(60'000 + LeaseTimes{}.over_ms());
  CHECK(served.at(id).last<PrepareRound>() != nullptr);
}

TEST_CASE("newcomers on standby begin no round while leases of the coordinator before may run, though all are there") {
  Served served;
  const ConnectionId fresh = served.join("a", 1, job_terms(2, 2));
  const ConnectionId stood_by =
      served.greet({"a", 2, 0, 1});  // the coordinator that it has met had the first term, too
  served.say(stood_by, served.joiner(2, job_terms(2, 2)));
  for (std::int64_t ms = 100; ms < LeaseTimes{}.over_ms(); ms += 100) {
    served.time(ms);
    CHECK(served.at(fresh).last<PrepareRound>() == nullptr);
  }
  served.time(LeaseTimes{}.over_ms());
  CHECK(served.at(fresh).last<PrepareRound>() != nullptr);
  CHECK(served.at(stood_by).last<PrepareRound>() != nullptr);
}
