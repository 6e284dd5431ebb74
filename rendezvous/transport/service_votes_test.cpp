// Keep-alives and votes on the connections of a service.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "rendezvous/transport/service_test_support.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::transport;
using namespace elastic::transport::testing;
using coordinator::testing::facts_of;
using coordinator::testing::job_terms;
using namespace elastic::protocol;

namespace {

// A service whose two nodes have joined a job in which votes count, and have a round.
struct Voted : Served {
  explicit Voted(const ServiceSettings& settings = {}, int min_nodes = 2) : Served(settings) {
    for (const AgentId agent : {1u, 2u}) {
      const ConnectionId id = greet({"j", agent});
      NodeJoins joins = joiner(agent, job_terms(min_nodes, 2));
      joins.rules.failover = JobRules::Failover::kMajority;
      joins.addresses = "10.0.0.1";
      joins.peer_port = 4'000;
      joins.hosts_coordinator = settings.own_agent == agent;
      at(id).acknowledges = true;
      say(id, joins);
    }
  }
  const election::Leader& leader() { return service.find("j")->leader(); }
};

}  // namespace

TEST_CASE("each answer to a keep-alive asks for the node's vote, which counts from when the answer was sent") {
  Voted served;
  for (const ConnectionId id : {1u, 2u}) served.keep_alive(id);
  CHECK(served.at(1).asked == 1);
  served.say(1, StoreIsOpen{0, {"h", 1}});
  CHECK(served.at(2).last<RunWorkers>() != nullptr);
  served.now_ms = 1'000;
  for (const ConnectionId id : {1u, 2u}) served.keep_alive(id);
  CHECK(served.at(1).good_for_ms == 2'930);  // what is left of the votes of 0 ms, less 1 %
  for (const ConnectionId id : {1u, 2u}) served.at(id).acknowledges = false;
  served.now_ms = 2'000;
  for (const ConnectionId id : {1u, 2u}) served.keep_alive(id);
  CHECK(served.at(2).good_for_ms == 2'930);
  served.time(4'859);
  CHECK(served.at(1).last<Resigned>() == nullptr);
  served.time(4'860);
  CHECK(served.at(1).last<Resigned>() != nullptr);
  CHECK(served.at(1).closed);
  CHECK(served.at(2).closed);
}

TEST_CASE("a lease acknowledgement of what was never sent does not count") {
  Voted served;
  for (const ConnectionId id : {1u, 2u}) served.at(id).acknowledges = false;
  for (const ConnectionId id : {1u, 2u}) served.keep_alive(id);
  served.say(1, StoreIsOpen{0, {"h", 1}});
  for (const ConnectionId id : {1u, 2u}) {
    for (const std::uint64_t number : {0u, 2u, 99u}) {
      ByteString bytes;
      served.at(id).session.acknowledge_lease(number, {}, bytes);
      served.read(id, bytes);
    }
  }
  CHECK(served.at(1).last<RunWorkers>() == nullptr);
  for (const ConnectionId id : {1u, 2u}) {
    ByteString bytes;
    served.at(id).session.acknowledge_lease(1, {}, bytes);
    served.read(id, bytes);
  }
  CHECK(served.at(1).last<RunWorkers>() != nullptr);
}

TEST_CASE("the welcome names the agent in the coordinator's process, and the coordinator counts votes") {
  Voted served({.own_agent = 1});
  CHECK(served.at(1).session.welcome().host == 1);
  CHECK(served.leader().grant_for(false));
}

TEST_CASE("newcomers are redirected to the coordinator that gossips, for a loss timeout, and others begin nothing") {
  Served served({.own_agent = 1});
  const auto gossip = [&] {
    Introduction there{"j", 5, 77, 3};
    there.gossips = Gossip{"10.0.0.6", 4711, 500, 2};
    return served.greet(there);
  };
  const ConnectionId early = served.greet({"j", 1});
  NodeJoins joins = served.joiner(1, job_terms(2, 3));
  joins.rules.failover = JobRules::Failover::kMajority;
  served.say(early, joins);
  CHECK(served.service.find("j") != nullptr);
  const ConnectionId gossip_sender = gossip();
  CHECK(served.at(gossip_sender).error.contains("the announcement was heard"));
  CHECK(served.at(early).last<Resigned>() != nullptr);
  CHECK(served.at(early).closed);
  CHECK(served.service.find("j") == nullptr);
  served.now_ms = 4'999;
  CHECK(served.at(served.greet({"j", 1, 0, 1})).redirect == Redirect{"10.0.0.6", 4711, {}});
  CHECK(served.at(served.greet({"k", 1})).welcome);
  // A node of a round is no newcomer: it may elect a coordinator here.
  CHECK(served.at(served.greet({"j", 9, 77, 1})).welcome);
}

TEST_CASE("who asks at a further host of its endpoint begins no job there, but is let into one that is there") {
  Served served;
  Introduction further{"j", 1};
  further.may_begin = false;
  CHECK(served.at(served.greet(further)).redirect == Redirect{{}, 0, 500, true});
  CHECK(served.service.find("j") == nullptr);
  CHECK(served.at(served.greet({"j", 2})).welcome);
  CHECK(served.at(served.greet(further)).welcome);
}

TEST_CASE("leader gossip is forgotten after a loss timeout, and gossip with another secret is not heard") {
  for (const bool has_secret : {true, false}) {
    Served served({.secret = "s"});
    Introduction there{"j", 5, 77, 3};
    there.gossips = Gossip{"10.0.0.6", 4711, 500, 2};
    served.greet(there, has_secret ? "s" : "other");
    served.now_ms = has_secret ? 5'000 : 1;
    const ConnectionId id = served.greet({"j", 1}, "s");
    CHECK_FALSE(served.at(id).redirect);
    served.say(id, served.joiner(1, job_terms(1, 1)));
    CHECK(served.at(id).welcome);
  }
}

TEST_CASE("of two starts elsewhere the one that goes on is gossiped to the other, and newcomers are redirected to it") {
  Served served;
  const auto gossip = [&](Incarnation incarnation, const char* where, RoundNumber round) {
    Introduction there{"j", 5, incarnation, 3};
    there.gossips = Gossip{where, 4711, 500, round};
    served.gossiped_to.clear();
    served.greet(there);
  };
  gossip(77, "10.0.0.6", 0);
  gossip(77, "10.0.0.6", 0);
  CHECK(served.gossiped_to.empty());
  gossip(78, "10.0.0.7", 2);
  CHECK(served.gossiped_to.empty());
  gossip(77, "10.0.0.6", 0);
  REQUIRE(served.gossiped_to.size() == 1);
  CHECK(served.gossiped_to[0].what.incarnation == 78);
  CHECK(served.gossiped_to[0].what.gossips == Gossip{"10.0.0.7", 4711, 500, 2});
  CHECK(served.gossiped_to[0].addresses == "10.0.0.6");
  CHECK(served.gossiped_to[0].port == 4711);
  CHECK(served.at(served.greet({"j", 1})).redirect == Redirect{"10.0.0.7", 4711, {}});
  served.now_ms = 5'000;
  gossip(77, "10.0.0.6", 0);
  CHECK(served.gossiped_to.empty());
}

TEST_CASE("a coordinator that goes on gossips to one that gossips, and to none that goes before it") {
  for (const bool in_own_process : {false, true}) {
    ServiceSettings settings;
    if (in_own_process) settings.own_process = NextLeader{9, -1, "10.0.0.1 10.1.0.1", 29'400};
    if (!in_own_process) settings.own_agent = 1;
    Voted served(settings);
    Introduction there{"j", 5, 77, 3};
    there.gossips = Gossip{"10.0.0.6", 4711, 500, {}};
    served.greet(there);
    REQUIRE(served.gossiped_to.size() == 1);
    const Introduction& what = served.gossiped_to[0].what;
    CHECK(what.incarnation == served.service.find("j")->incarnation());
    CHECK(what.gossips->addresses == (in_own_process ? "10.0.0.1 10.1.0.1" : "10.0.0.1"));
    CHECK(what.gossips->round == 0);
    CHECK(served.gossiped_to[0].addresses == "10.0.0.6");
    there.gossips->round = 4;
    served.greet(there);
    CHECK(served.gossiped_to.size() == 1);
    CHECK(served.at(1).last<StopWorkers>() != nullptr);
  }
}

TEST_CASE("a coordinator's own gossip, which comes back to it, changes nothing") {
  Voted served({.own_agent = 1});
  const auto own = served.service.gossip("j");
  REQUIRE(own.has_value());
  CHECK(own->job == "j");
  CHECK(own->agent == 1);
  CHECK(own->gossips->addresses == "10.0.0.1");
  served.greet(*own);
  CHECK(served.service.find("j") != nullptr);
  CHECK_FALSE(served.at(1).closed);
}

TEST_CASE("nodes that come to a candidate are asked for their votes, and get leases once it is elected") {
  Served served;
  const ConnectionId id = served.greet({"j", 5, 7, 1});
  NodeJoins joins = served.joiner(5, job_terms(2, 2));
  joins.rules.failover = JobRules::Failover::kMajority;
  joins.facts = {.incarnation = 7,
                 .term = 1,
                 .round = 3,
                 .activity = AgentFacts::Activity::kRunning,
                 .place = {0, 2, 0, 2, 0, 2},
                 .membership = 99};
  served.at(id).acknowledges = true;
  served.at(id).voter_state = VoterState{.rounds = {{{1, 3, 99, 2, 0}, 0, true}}};
  served.say(id, joins);
  CHECK_FALSE(served.service.find("j")->may_act());
  served.keep_alive(id);
  // Its vote is enough, with that of the tie-breaker: it is asked once more at once, and then has its lease.
  CHECK(served.at(id).asked == 3);
  CHECK(served.service.find("j")->may_act());
  CHECK(served.at(id).good_for_ms == 3'000);
}

TEST_CASE("a candidate whose own node votes for one of a higher term gives way at once, unless its votes are enough") {
  for (const int nodes : {4, 2}) {
    const bool is_enough = nodes == 2;  // with that of the tie-breaker
    Served served;
    const ConnectionId id = served.greet({"j", 5, 7, 1});
    NodeJoins joins = served.joiner(5, job_terms(nodes, nodes));
    joins.rules.failover = JobRules::Failover::kMajority;
    joins.facts = {.incarnation = 7,
                   .term = 1,
                   .round = 3,
                   .activity = AgentFacts::Activity::kRunning,
                   .place = {0, nodes, 0, nodes, 0, nodes},
                   .membership = 99};
    served.at(id).acknowledges = true;
    served.at(id).voter_state = VoterState{.rounds = {{{1, 3, 99, nodes, 0}, 0, true}}};
    served.say(id, joins);
    const auto is = [&](const PeerFacts& facts) { served.carry(served.service.on_event(facts, served.now_ms)); };
    const Term term = served.service.find("j")->term();
    is({.job = "another", .addresses = "10.0.0.9", .port = 29400, .term = term + 1});
    is({.job = "j", .opens_ms = 1});
    is({.job = "j", .addresses = "10.0.0.8", .port = 29400, .term = term - 1});
    if (is_enough) served.keep_alive(id);
    REQUIRE(served.service.find("j")->may_act() == is_enough);
    is({.job = "j", .addresses = "10.0.0.9", .port = 29400, .term = term + 1});
    CHECK((served.service.jobs() == 1) == is_enough);
    CHECK((served.at(id).last<Resigned>() == nullptr) == is_enough);
  }
}

TEST_CASE("a death notice that comes before its round is taken over is kept for the one who takes it over") {
  for (const bool has_word : {true, false}) {
    Served served;
    if (has_word) {
      const ConnectionId word = served.open();
      served.read(word, node_is_empty_frame({"j", 6, 7, 1}, 3, ""));
    }
    const std::uint64_t digest = membership_digest(7, 3, {5, 6});
    const ConnectionId id = served.greet({"j", 5, 7, 1});
    NodeJoins joins = served.joiner(5, job_terms(1, 2));
    joins.rules.failover = JobRules::Failover::kMajority;
    joins.facts = {.incarnation = 7,
                   .term = 1,
                   .round = 3,
                   .activity = AgentFacts::Activity::kRunning,
                   .place = {0, 2, 0, 2, 0, 2},
                   .membership = digest};
    served.at(id).acknowledges = true;
    served.at(id).voter_state = VoterState{.rounds = {{{1, 3, digest, 2, 0}, 0, true}}};
    served.say(id, joins);
    served.keep_alive(id);
    CHECK(served.service.find("j")->may_act());
    CHECK((served.at(id).last<StopWorkers>() != nullptr) == has_word);
  }
}

namespace {

// A node's peer port, and an agent of its job that connects there. Knows where that was redirected.
struct PeerPort : Served {
  explicit PeerPort(bool is_peer_server = true)
      : Served({.only_job = "j", .own_agent = 5, .is_peer_server = is_peer_server}) {}
  void is(const PeerFacts& facts) { carry(service.on_event(facts, now_ms)); }
  // What the peer port answers; empty: it lets the agent in.
  std::optional<Redirect> knocks(Incarnation incarnation) {
    const ConnectionId id = greet({"j", 6, incarnation, incarnation == 0 ? 0u : 1u});
    if (at(id).welcome) return {};
    REQUIRE(at(id).closed);
    REQUIRE(at(id).redirect);
    return at(id).redirect;
  }
};

}  // namespace

TEST_CASE("a peer port redirects to the coordinator that its node has, and begins no job") {
  PeerPort peer_port;
  CHECK(peer_port.knocks(0)->retry_ms == 500);
  CHECK(peer_port.knocks(7)->retry_ms == 20);
  // A node of no round knows no more of the job than a newcomer does.
  CHECK(peer_port.knocks(0)->knows_nothing);
  CHECK_FALSE(peer_port.knocks(7)->knows_nothing);
  peer_port.is({.belongs = true});
  CHECK_FALSE(peer_port.knocks(0)->knows_nothing);
  peer_port.is({.addresses = "10.0.0.9", .port = 29400});
  CHECK(peer_port.knocks(0) == Redirect{"10.0.0.9", 29400, {}});
  CHECK(peer_port.knocks(7) == Redirect{"10.0.0.9", 29400, {}});
  CHECK(peer_port.service.jobs() == 0);
}

TEST_CASE("the endpoint begins no other job while its node has the coordinator elsewhere") {
  PeerPort endpoint(false);
  endpoint.is({.job = "another", .addresses = "10.0.0.9", .port = 29400});
  endpoint.is({.job = "j", .addresses = "10.0.0.9", .port = 29400});
  CHECK(endpoint.knocks(0) == Redirect{"10.0.0.9", 29400, {}});
  CHECK(endpoint.service.jobs() == 0);
  endpoint.is({.job = "j", .opens_ms = 3'500});
  CHECK_FALSE(endpoint.knocks(0));
}

TEST_CASE(
    "a process that transferred its leadership is elected no more, and redirects when its node has found the leader") {
  Voted served({.own_agent = 1}, 1);
  std::vector<ConnectionId> nodes;
  for (const auto& [id, peer] : served.peers) nodes.push_back(id);
  served.say(nodes[0], StoreIsOpen{0, {"10.0.0.1", 1}});
  for (const ConnectionId id : nodes) served.keep_alive(id);
  REQUIRE(served.at(nodes[1]).last<RunWorkers>() != nullptr);
  served.say(nodes[0], NodeLeaves{SIGTERM});
  REQUIRE(served.service.jobs() == 0);
  for (const Introduction& who : {Introduction{"j", 2, 7, 1}, Introduction{"j", 3}}) {
    const ConnectionId id = served.greet(who);
    CHECK(served.at(id).closed);
    CHECK(served.at(id).redirect == Redirect{});
  }
  CHECK(served.service.jobs() == 0);
  served.carry(served.service.on_event(PeerFacts{.job = "j", .addresses = "10.0.0.9", .port = 29400}, served.now_ms));
  CHECK(served.at(served.greet({"j", 2, 7, 1})).redirect == Redirect{"10.0.0.9", 29400, {}});
}

TEST_CASE(
    "a process that has only its coordinator left and is told to end transfers the leadership, or else ends the job") {
  for (const int min_nodes : {1, 2}) {
    Voted served({.own_agent = 1}, min_nodes);
    served.say(1, StoreIsOpen{0, {"10.0.0.1", 1}});
    for (const ConnectionId id : {1u, 2u}) served.keep_alive(id);
    REQUIRE(served.at(2).last<RunWorkers>() != nullptr);
    served.gone(1);
    served.carry(served.service.on_event(AgentEnded{}, served.now_ms));
    CHECK(!served.service.only_ends());
    served.carry(served.service.on_event(ProcessLeaves{SIGTERM}, served.now_ms));
    CHECK(served.service.only_ends());
    if (min_nodes == 1) {
      REQUIRE(served.at(2).last<Resigned>() != nullptr);
      CHECK(served.at(2).last<Resigned>()->transfers_leadership);
      CHECK(served.service.connections() == 0);
      continue;
    }
    served.say(2, NodeStopped{0, {}, {}});
    served.time(served.now_ms + 4'000);  // the lease of the lost node is over
    REQUIRE(served.at(2).last<EndJob>() != nullptr);
    CHECK(served.at(2).last<EndJob>()->job_result.outcome == Outcome::kStopped);
    CHECK(served.at(2).last<EndJob>()->job_result.signal == SIGTERM);
  }
}

TEST_CASE(
    "a peer port whose node has lost the coordinator is open to those who have lost it, too, when the node is free") {
  PeerPort peer_port;
  peer_port.now_ms = 1'000;
  peer_port.is({.opens_ms = 3'500});
  CHECK(peer_port.knocks(7)->retry_ms == 2'500);
  CHECK(peer_port.knocks(0)->retry_ms == 500);
  peer_port.now_ms = 3'500;
  CHECK_FALSE(peer_port.knocks(7));
  CHECK(peer_port.service.jobs() == 1);
  peer_port.is({.addresses = "10.0.0.9", .port = 29400});  // its own agent has found another one
  CHECK_FALSE(peer_port.knocks(7));
}

TEST_CASE("the status names each node's peer port at the address by which other nodes reach it") {
  Served served;
  served.from = "10.0.0.2";
  const ConnectionId id = served.greet({"j", 1});
  NodeJoins joins = served.joiner(1, job_terms(2, 2));
  joins.peer_port = 4'000;
  served.say(id, joins);
  served.from = "fd00::3";
  joins.agent = 2;
  served.say(served.greet({"j", 2}), joins);
  joins.agent = 3;
  joins.peer_port = 0;
  served.say(served.greet({"j", 3}), joins);
  const status::Coordinator status = served.service.status(served.now_ms);
  std::vector<std::string> peer_ports;
  for (const status::Member& member : status.jobs.at(0).members) peer_ports.push_back(member.peer_address);
  std::ranges::sort(peer_ports);
  CHECK(peer_ports == std::vector<std::string>{"", "10.0.0.2:4000", "[fd00::3]:4000"});
}
