#include "rendezvous/coordinator/operator_orders.h"

#include <doctest/doctest.h>

#include <string>

using namespace elastic;
using coordinator::OperatorOrder;
using coordinator::OperatorOrders;
using membership::MemberState;
using membership::Node;
using membership::Roster;
using protocol::AgentId;
using Kind = coordinator::OrderAnswered::Kind;

namespace {

// A job of --nnodes=2:4 with these nodes, in the order of their ranks; agents have the numbers of their sessions.
struct Job {
  Node& add(AgentId agent, MemberState member_state = MemberState::kMember) {
    Node node;
    node.agent = agent;
    node.session = static_cast<protocol::NodeId>(agent);
    node.address = "host" + std::to_string(agent);
    node.addresses = "10.0.0." + std::to_string(agent) + " fe80::" + std::to_string(agent);
    node.place.node_rank = static_cast<int>(roster.size());
    return roster.add(std::move(node), member_state);
  }
  OperatorOrders::Ruling drain(const std::string& node) {
    return orders.judge({.node = node}, {roster, rules, has_workers, job_ends, may_transfer_leadership});
  }
  OperatorOrders::Ruling stop() {
    return orders.judge({.kind = OperatorOrder::Kind::kStop},
                        {roster, rules, has_workers, job_ends, may_transfer_leadership});
  }

  Roster roster;
  membership::FormingRules rules{.min_nodes = 2, .max_nodes = 4, .join_timeout_ms = 60'000};
  bool has_workers = true;
  bool job_ends = false;
  bool may_transfer_leadership = false;
  OperatorOrders orders;
};

}  // namespace

TEST_CASE("a node is named by its rank, its name or one of its addresses, and the answer says what follows") {
  for (const char* name : {"1", " 1 ", "host6", "HOST6", "10.0.0.6", "fe80::6", "::ffff:10.0.0.6"}) {
    Job job;
    for (const AgentId agent : {5U, 6U, 7U}) job.add(agent);
    const auto ruling = job.drain(name);
    CHECK(ruling.answer.kind == Kind::kAccepted);
    CHECK(ruling.leaves == 6U);
    CHECK(!ruling.stops);
    CHECK(ruling.answer.text ==
          "node 1 (host6) leaves: its workers get SIGTERM and the time of its --shutdown-timeout to end; then the "
          "other 2 nodes begin a new round, which --max-restarts does not count");
  }
}

TEST_CASE("of a node that nobody has the answer lists those that there are") {
  Job job;
  for (const AgentId agent : {5U, 6U}) job.add(agent);
  job.add(9, MemberState::kReady);
  for (const char* name : {"host7", "10.0.0.7", "host", ""}) {
    const auto ruling = job.drain(name);
    CHECK(ruling.answer.kind == Kind::kUnknown);
    CHECK(!ruling.leaves);
    CHECK(ruling.answer.text.ends_with("; the nodes are 0 (host5), 1 (host6), host9 (in no round)"));
  }
  // A node that is in no round has no rank.
  CHECK(job.drain("2").answer.text == "no node has rank 2; the nodes are 0 (host5), 1 (host6), host9 (in no round)");
  Job empty;
  CHECK(empty.drain("host0").answer.text.ends_with("; the job has no node now"));
  empty.add(5, MemberState::kReady);
  CHECK(empty.drain("0").answer.text ==
        "no node has a rank, because there is no round now; name it by its address; the only node is host5 (in no "
        "round)");
}

TEST_CASE("a name that several nodes have is refused with their ranks") {
  Job job;
  for (const AgentId agent : {5U, 6U, 7U}) job.add(agent).address = "host5";
  const auto ruling = job.drain("host5");
  CHECK(ruling.answer.kind == Kind::kRefused);
  CHECK(!ruling.leaves);
  CHECK(ruling.answer.text ==
        "host5 may be any of 3 nodes; the nodes are 0 (host5), 1 (host5), 2 (host5); name one by its rank");
  CHECK(job.drain("2").leaves == 7U);
}

TEST_CASE("a list of many nodes is cut") {
  Job job;
  for (AgentId agent = 0; agent < 40; ++agent) job.add(agent);
  CHECK(job.drain("x").answer.text.ends_with("15 (host15) and 24 more"));
}

TEST_CASE("who leaves already is not told again, and counts no more as one who stays") {
  Job job;
  for (const AgentId agent : {5U, 6U, 7U}) job.add(agent);
  CHECK(job.drain("1").leaves == 6U);
  const auto twice = job.drain("host6");
  CHECK(twice.answer.kind == Kind::kAccepted);
  CHECK(!twice.leaves);
  CHECK(twice.answer.text == "node 1 (host6) is leaving already");
  CHECK(job.drain("2").answer.text.contains("the other node is fewer than the 2"));
  CHECK(job.orders.has_drained(6));
  job.orders.has_left(6);
  CHECK(!job.orders.has_drained(6));
  job.roster.move(job.roster.at(6), MemberState::kLeaving);
  CHECK(job.drain("host6").answer.text == "node 1 (host6) is leaving already");
}

TEST_CASE("the answer says that the nodes that are left wait, or that the job ends with the node") {
  Job job;
  job.rules.replacement_wait_ms = 5'000;
  job.add(5);
  job.add(6);
  const auto below = job.drain("0");
  CHECK(below.leaves == 5U);
  CHECK(
      below.answer.text.ends_with("; the other node is fewer than the 2 that --nnodes asks for: the job then waits "
                                  "for more nodes, and fails if too few have joined after 5 s"));
  CHECK(job.drain("1").answer.text.ends_with("; no other node is in the job, which ends with it"));
}

TEST_CASE("a node that is in no round leaves at once, and the round goes on") {
  Job job;
  for (const AgentId agent : {5U, 6U}) job.add(agent);
  job.add(7, MemberState::kReady);
  const auto ruling = job.drain("host7");
  CHECK(ruling.leaves == 7U);
  CHECK(ruling.answer.text == "host7 (in no round) leaves: no workers of it run; the job goes on");
}

TEST_CASE("a node that is lost, or that hosts the coordinator, is not told to leave") {
  Job job;
  job.add(5).hosts_coordinator = true;
  job.roster.set_session(job.add(6, MemberState::kLost), {});
  for (const char* rank : {"0", "1"}) {
    CHECK(job.drain(rank).answer.kind == Kind::kRefused);
    CHECK(!job.drain(rank).leaves);
  }
  CHECK(job.drain("0").answer.text.contains("hosts the job's coordinator"));
  CHECK(job.drain("0").answer.text.contains("--stop"));
  CHECK(job.drain("1").answer.text.contains("has lost its connection"));
  job.may_transfer_leadership = true;
  CHECK(job.drain("0").leaves == 5U);
}

TEST_CASE("a job is stopped once") {
  Job job;
  for (const AgentId agent : {5U, 6U}) job.add(agent);
  const auto ruling = job.stop();
  CHECK(ruling.stops);
  CHECK(ruling.answer.kind == Kind::kAccepted);
  CHECK(ruling.answer.text.contains("the workers of its 2 nodes get SIGTERM"));
  job.has_workers = false;
  CHECK(job.stop().answer.text == "the job ends: no workers run on its 2 nodes");
  job.job_ends = true;
  for (const auto& late : {job.stop(), job.drain("1"), job.drain("host9")}) {
    CHECK(!late.stops);
    CHECK(!late.leaves);
    CHECK(late.answer.kind == Kind::kAccepted);
    CHECK(late.answer.text == "the job is ending already, on all its nodes");
  }
}
