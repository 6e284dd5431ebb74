// Keep-alives and promises on the connections of a service.
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

// A service whose two nodes have joined a job in which promises count, and have a round.
struct Promised : Served {
  explicit Promised(const ServiceSettings& settings = {}, int min_nodes = 2) : Served(settings) {
    for (const AgentId agent : {1u, 2u}) {
      const ConnectionId id = greet({"j", agent});
      NodeJoins joins = joiner(agent, job_terms(min_nodes, 2));
      joins.rules.failover = JobRules::Failover::kMajority;
      joins.addresses = "10.0.0.1";
      joins.door = 4'000;
      joins.hosts_coordinator = settings.own_agent == agent;
      at(id).promises = true;
      say(id, joins);
    }
  }
  const Mandate& mandate() { return service.find("j")->mandate(); }
};

}  // namespace

TEST_CASE("each answer to a keep-alive asks for the node's support, which counts from when the answer was sent") {
  Promised served;
  for (const ConnectionId id : {1u, 2u}) served.keep_alive(id);
  CHECK(served.at(1).asked == 1);
  served.say(1, StoreIsOpen{0, {"h", 1}});
  CHECK(served.at(2).last<RunWorkers>() != nullptr);
  served.now_ms = 1'000;
  for (const ConnectionId id : {1u, 2u}) served.keep_alive(id);
  CHECK(served.at(1).good_for_ms == 2'930);  // 1 % less than what was promised at 0 ms is left
  for (const ConnectionId id : {1u, 2u}) served.at(id).promises = false;
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

TEST_CASE("a promise that acknowledges what was never sent does not count") {
  Promised served;
  for (const ConnectionId id : {1u, 2u}) served.at(id).promises = false;
  for (const ConnectionId id : {1u, 2u}) served.keep_alive(id);
  served.say(1, StoreIsOpen{0, {"h", 1}});
  for (const ConnectionId id : {1u, 2u}) {
    for (const std::uint64_t number : {0u, 2u, 99u}) {
      ByteString bytes;
      served.at(id).session.holds(number, {}, bytes);
      served.read(id, bytes);
    }
  }
  CHECK(served.at(1).last<RunWorkers>() == nullptr);
  for (const ConnectionId id : {1u, 2u}) {
    ByteString bytes;
    served.at(id).session.holds(1, {}, bytes);
    served.read(id, bytes);
  }
  CHECK(served.at(1).last<RunWorkers>() != nullptr);
}

TEST_CASE(
    "the welcome names the agent in the coordinator's process, and lends no longer than the coordinator may act") {
  Promised served({.own_agent = 1});
  CHECK(served.at(1).session.welcome().host == 1);
  CHECK(served.mandate().is_counting());
}

TEST_CASE(
    "newcomers are led to the coordinator that has announced itself, for a loss timeout, and others begin nothing") {
  Served served({.own_agent = 1});
  const auto announce = [&] {
    Introduction there{"j", 5, 77, 3};
    there.announces = Announcement{"10.0.0.6", 4711, 500, 2};
    return served.greet(there);
  };
  const ConnectionId early = served.greet({"j", 1});
  NodeJoins joins = served.joiner(1, job_terms(2, 3));
  joins.rules.failover = JobRules::Failover::kMajority;
  served.say(early, joins);
  CHECK(served.service.find("j") != nullptr);
  const ConnectionId announcer = announce();
  CHECK(served.at(announcer).error.contains("the announcement was heard"));
  CHECK(served.at(early).last<Resigned>() != nullptr);
  CHECK(served.at(early).closed);
  CHECK(served.service.find("j") == nullptr);
  served.now_ms = 4'999;
  CHECK(served.at(served.greet({"j", 1, 0, 1})).elsewhere == Elsewhere{"10.0.0.6", 4711, {}});
  CHECK(served.at(served.greet({"k", 1})).welcome);
  // A node of a round is no newcomer: it may elect a coordinator here.
  CHECK(served.at(served.greet({"j", 9, 77, 1})).welcome);
}

TEST_CASE("who asks at a further host of its endpoint begins no job there, but is let into one that is there") {
  Served served;
  Introduction further{"j", 1};
  further.may_begin = false;
  CHECK(served.at(served.greet(further)).elsewhere == Elsewhere{{}, 0, 500, true});
  CHECK(served.service.find("j") == nullptr);
  CHECK(served.at(served.greet({"j", 2})).welcome);
  CHECK(served.at(served.greet(further)).welcome);
}

TEST_CASE("an announcement is forgotten after a loss timeout, and one with another secret is not heard") {
  for (const bool has_secret : {true, false}) {
    Served served({.secret = "s"});
    Introduction there{"j", 5, 77, 3};
    there.announces = Announcement{"10.0.0.6", 4711, 500, 2};
    served.greet(there, has_secret ? "s" : "other");
    served.now_ms = has_secret ? 5'000 : 1;
    const ConnectionId id = served.greet({"j", 1}, "s");
    CHECK_FALSE(served.at(id).elsewhere);
    served.say(id, served.joiner(1, job_terms(1, 1)));
    CHECK(served.at(id).welcome);
  }
}

TEST_CASE(
    "of two starts with coordinators elsewhere the one that goes on is announced to the other, and to newcomers") {
  Served served;
  const auto announce = [&](Incarnation incarnation, const char* where, RoundNumber round) {
    Introduction there{"j", 5, incarnation, 3};
    there.announces = Announcement{where, 4711, 500, round};
    served.announced_to.clear();
    served.greet(there);
  };
  announce(77, "10.0.0.6", 0);
  announce(77, "10.0.0.6", 0);
  CHECK(served.announced_to.empty());
  announce(78, "10.0.0.7", 2);
  CHECK(served.announced_to.empty());
  announce(77, "10.0.0.6", 0);
  REQUIRE(served.announced_to.size() == 1);
  CHECK(served.announced_to[0].what.incarnation == 78);
  CHECK(served.announced_to[0].what.announces == Announcement{"10.0.0.7", 4711, 500, 2});
  CHECK(served.announced_to[0].addresses == "10.0.0.6");
  CHECK(served.announced_to[0].port == 4711);
  CHECK(served.at(served.greet({"j", 1})).elsewhere == Elsewhere{"10.0.0.7", 4711, {}});
  served.now_ms = 5'000;
  announce(77, "10.0.0.6", 0);
  CHECK(served.announced_to.empty());
}

TEST_CASE("a coordinator that goes on announces itself to one that announces itself, and to none that goes before it") {
  for (const bool in_own_process : {false, true}) {
    ServiceSettings settings;
    if (in_own_process) settings.own_process = Successor{9, -1, "10.0.0.1 10.1.0.1", 29'400};
    if (!in_own_process) settings.own_agent = 1;
    Promised served(settings);
    Introduction there{"j", 5, 77, 3};
    there.announces = Announcement{"10.0.0.6", 4711, 500, {}};
    served.greet(there);
    REQUIRE(served.announced_to.size() == 1);
    const Introduction& what = served.announced_to[0].what;
    CHECK(what.incarnation == served.service.find("j")->incarnation());
    CHECK(what.announces->addresses == (in_own_process ? "10.0.0.1 10.1.0.1" : "10.0.0.1"));
    CHECK(what.announces->round == 0);
    CHECK(served.announced_to[0].addresses == "10.0.0.6");
    there.announces->round = 4;
    served.greet(there);
    CHECK(served.announced_to.size() == 1);
    CHECK(served.at(1).last<StopWorkers>() != nullptr);
  }
}

TEST_CASE("a coordinator's own announcement, which comes back to it, changes nothing") {
  Promised served({.own_agent = 1});
  const auto own = served.service.announcement("j");
  REQUIRE(own.has_value());
  CHECK(own->job == "j");
  CHECK(own->agent == 1);
  CHECK(own->announces->addresses == "10.0.0.1");
  served.greet(*own);
  CHECK(served.service.find("j") != nullptr);
  CHECK_FALSE(served.at(1).closed);
}

TEST_CASE("nodes that come to a candidate are asked, and lent nothing") {
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
  served.at(id).promises = true;
  served.at(id).testimony = Testimony{.rounds = {{{1, 3, 99, 2, 0}, 0, true}}};
  served.say(id, joins);
  CHECK(served.service.find("j")->mandate().stands());
  served.keep_alive(id);
  // Its vote is enough, with that of the tie-breaker: it is asked once more at once, and then has its lease.
  CHECK(served.at(id).asked == 3);
  CHECK_FALSE(served.service.find("j")->mandate().stands());
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
    served.at(id).promises = true;
    served.at(id).testimony = Testimony{.rounds = {{{1, 3, 99, nodes, 0}, 0, true}}};
    served.say(id, joins);
    const auto is = [&](const DoorIs& door) { served.carry(served.service.on_event(door, served.now_ms)); };
    const Term term = served.service.find("j")->term();
    is({.job = "another", .addresses = "10.0.0.9", .port = 29400, .term = term + 1});
    is({.job = "j", .opens_ms = 1});
    is({.job = "j", .addresses = "10.0.0.8", .port = 29400, .term = term - 1});
    if (is_enough) served.keep_alive(id);
    REQUIRE(served.service.find("j")->mandate().stands() != is_enough);
    is({.job = "j", .addresses = "10.0.0.9", .port = 29400, .term = term + 1});
    CHECK((served.service.jobs() == 1) == is_enough);
    CHECK((served.at(id).last<Resigned>() == nullptr) == is_enough);
  }
}

TEST_CASE("a guardian's word that comes before its round is taken over is kept for the one who takes it over") {
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
    served.at(id).promises = true;
    served.at(id).testimony = Testimony{.rounds = {{{1, 3, digest, 2, 0}, 0, true}}};
    served.say(id, joins);
    served.keep_alive(id);
    CHECK_FALSE(served.service.find("j")->mandate().stands());
    CHECK((served.at(id).last<StopWorkers>() != nullptr) == has_word);
  }
}

namespace {

// A node's door, and an agent of its job that knocks. Knows where that was sent.
struct Door : Served {
  explicit Door(bool is_door = true) : Served({.only_job = "j", .own_agent = 5, .is_door = is_door}) {}
  void is(const DoorIs& door) { carry(service.on_event(door, now_ms)); }
  // What the door answers; nothing: it lets the agent in.
  std::optional<Elsewhere> knocks(Incarnation incarnation) {
    const ConnectionId id = greet({"j", 6, incarnation, incarnation == 0 ? 0u : 1u});
    if (at(id).welcome) return {};
    REQUIRE(at(id).closed);
    REQUIRE(at(id).elsewhere);
    return at(id).elsewhere;
  }
};

}  // namespace

TEST_CASE("a door leads to the coordinator that its node has, and begins no job") {
  Door door;
  CHECK(door.knocks(0)->retry_ms == 500);
  CHECK(door.knocks(7)->retry_ms == 20);
  // A node of no round knows no more of the job than a newcomer does.
  CHECK(door.knocks(0)->knows_nothing);
  CHECK_FALSE(door.knocks(7)->knows_nothing);
  door.is({.belongs = true});
  CHECK_FALSE(door.knocks(0)->knows_nothing);
  door.is({.addresses = "10.0.0.9", .port = 29400});
  CHECK(door.knocks(0) == Elsewhere{"10.0.0.9", 29400, {}});
  CHECK(door.knocks(7) == Elsewhere{"10.0.0.9", 29400, {}});
  CHECK(door.service.jobs() == 0);
}

TEST_CASE("the endpoint begins no other job while its node has the coordinator elsewhere") {
  Door endpoint(false);
  endpoint.is({.job = "another", .addresses = "10.0.0.9", .port = 29400});
  endpoint.is({.job = "j", .addresses = "10.0.0.9", .port = 29400});
  CHECK(endpoint.knocks(0) == Elsewhere{"10.0.0.9", 29400, {}});
  CHECK(endpoint.service.jobs() == 0);
  endpoint.is({.job = "j", .opens_ms = 3'500});
  CHECK_FALSE(endpoint.knocks(0));
}

TEST_CASE("who has handed over is elected no more, and leads to the next coordinator when its node has found it") {
  Promised served({.own_agent = 1}, 1);
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
    CHECK(served.at(id).elsewhere == Elsewhere{});
  }
  CHECK(served.service.jobs() == 0);
  served.carry(served.service.on_event(DoorIs{.job = "j", .addresses = "10.0.0.9", .port = 29400}, served.now_ms));
  CHECK(served.at(served.greet({"j", 2, 7, 1})).elsewhere == Elsewhere{"10.0.0.9", 29400, {}});
}

TEST_CASE("a process that has only its coordinator left and is told to end hands it over, or else ends the job") {
  for (const int min_nodes : {1, 2}) {
    Promised served({.own_agent = 1}, min_nodes);
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
      CHECK(served.at(2).last<Resigned>()->hands_over);
      CHECK(served.service.connections() == 0);
      continue;
    }
    served.say(2, NodeStopped{0, {}, {}});
    served.time(served.now_ms + 4'000);  // the lease of the lost node is over
    REQUIRE(served.at(2).last<EndJob>() != nullptr);
    CHECK(served.at(2).last<EndJob>()->verdict.outcome == Outcome::kStopped);
    CHECK(served.at(2).last<EndJob>()->verdict.signal == SIGTERM);
  }
}

TEST_CASE("a door whose node has lost the coordinator is open to those who have lost it, too, when the node is free") {
  Door door;
  door.now_ms = 1'000;
  door.is({.opens_ms = 3'500});
  CHECK(door.knocks(7)->retry_ms == 2'500);
  CHECK(door.knocks(0)->retry_ms == 500);
  door.now_ms = 3'500;
  CHECK_FALSE(door.knocks(7));
  CHECK(door.service.jobs() == 1);
  door.is({.addresses = "10.0.0.9", .port = 29400});  // its own agent has found another one
  CHECK_FALSE(door.knocks(7));
}

TEST_CASE("the status names each node's door at the address by which other nodes reach it") {
  Served served;
  served.from = "10.0.0.2";
  const ConnectionId id = served.greet({"j", 1});
  NodeJoins joins = served.joiner(1, job_terms(2, 2));
  joins.door = 4'000;
  served.say(id, joins);
  served.from = "fd00::3";
  joins.agent = 2;
  served.say(served.greet({"j", 2}), joins);
  joins.agent = 3;
  joins.door = 0;
  served.say(served.greet({"j", 3}), joins);
  const status::Coordinator status = served.service.status(served.now_ms);
  std::vector<std::string> doors;
  for (const status::Member& member : status.jobs.at(0).members) doors.push_back(member.door);
  std::ranges::sort(doors);
  CHECK(doors == std::vector<std::string>{"", "10.0.0.2:4000", "[fd00::3]:4000"});
}
