// A link to a coordinator that asks for the node's vote, and the search for the next one.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <vector>

#include "rendezvous/agent/link_test_support.h"

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::agent::testing;
using namespace elastic::protocol;

TEST_CASE(
    "a link votes for the coordinator that asks for it, and its first lease acknowledgement has the voter state") {
  TiedLink tied;
  tied.begin();
  CHECK(tied.other.acks.empty());
  tied.say(PrepareRound{.round = 3, .place = {1, 2, 1, 2, 1, 2}, .membership = 9});
  CHECK(tied.other.last<RoundHeard>() == nullptr);  // no round before it counts
  tied.other.asks = true;
  tied.pass(1'000);
  REQUIRE(tied.other.acks.size() == 1);
  REQUIRE(tied.other.acks[0].voter_state);
  CHECK(tied.other.acks[0].voter_state->rounds.at(0).rank == 1);
  tied.pass(1'000);
  REQUIRE(tied.other.acks.size() == 2);
  CHECK_FALSE(tied.other.acks[1].voter_state);
  CHECK(tied.other.acks[1].number == static_cast<std::uint64_t>(tied.other.keep_alives));
  tied.say(PrepareRound{.round = 4, .place = {1, 2, 1, 2, 1, 2}, .membership = 10, .before = {{1, 3, 9, 2, 0}}});
  REQUIRE(tied.other.last<RoundHeard>() != nullptr);
  CHECK(tied.other.last<RoundHeard>()->round == 4);
  tied.say(NextRound{{1, 5, 11, 2, 0}, {{1, 3, 9, 2, 0}}});  // the node is not in this one
  CHECK(tied.other.last<RoundHeard>()->round == 5);
  CHECK(tied.link.follower().rounds().rounds().back().rank == std::nullopt);
}

namespace {

bool is_free(const TiedLink& tied) { return tied.link.follower().free_at_ms(tied.now_ms) == 0; }

// A node in a round whose coordinator, in the process of agent 8, has asked for its vote.
void begin_round(TiedLink& tied, bool refusal_is_proof) {
  tied.other.asks = true;
  tied.other.welcome.host = 8;
  tied.begin();
  tied.say(PrepareRound{.round = 3,
                        .place = {.node_count = 2},
                        .fence = {.term = tied.other.welcome.term},
                        .next_leaders = {{.agent = 8, .port = 4}},
                        .refusal_is_proof = refusal_is_proof});
  tied.pass(1'000);
}

// A node whose workers run in such a round of a coordinator of this term. It loses the coordinator, and finds another
// one of the next term, in the process of agent 9.
void run_and_lose(TiedLink& tied, Term term) {
  tied.other.welcome.term = term;
  begin_round(tied, true);
  tied.link.belongs();
  tied.say(RunWorkers{3, {"h", 1}});
  tied.other.welcome.term = term + 1;
  tied.other.welcome.host = 9;
  tied.broken();
  tied.pass(3'000);
  REQUIRE(tied.link.attached());
}

}  // namespace

TEST_CASE("a refused connection proves the coordinator's death unless the job's rules say that it does not") {
  for (const bool is_proof : {true, false}) {
    TiedLink tied;
    begin_round(tied, is_proof);
    tied.reachable = false;
    tied.broken();
    CHECK(is_free(tied) == is_proof);
  }
}

TEST_CASE("another process at the lost coordinator's port is a proof, too, but only where that was reached") {
  struct Case {
    bool is_proof;
    bool is_same_place;
  };
  for (const Case& each : {Case{true, true}, Case{false, true}, Case{true, false}}) {
    TiedLink tied;
    begin_round(tied, each.is_proof);
    const std::size_t before = tied.other.acks.size();
    tied.other.welcome.term = 2;
    tied.other.welcome.host = 9;
    tied.is_same_place = each.is_same_place;
    tied.broken();
    tied.look();
    tied.pass(1'000);
    CHECK((tied.other.acks.size() > before) == (each.is_proof && each.is_same_place));
  }
}

TEST_CASE("a node whose coordinator is lost before it has asked for a vote looks for the next leader all the same") {
  for (const bool is_refused : {true, false}) {
    TiedLink tied;
    tied.other.welcome.host = 8;
    tied.begin();
    tied.say(PrepareRound{.round = 3, .place = {.node_count = 2}, .next_leaders = {{.agent = 8, .port = 4}}});
    tied.pass(1'000);
    CHECK(tied.other.acks.empty());
    tied.reachable = false;
    tied.answers = is_refused;
    tied.broken();
    CHECK(is_free(tied) == is_refused);
    tied.pass(4'000);
    CHECK(tied.link.may_elect_from_ms(tied.now_ms) == 0);
  }
}

TEST_CASE("a silent coordinator is left once the node is free to vote, where there is somebody to vote for") {
  for (const bool has_next_leader : {true, false}) {
    TiedLink tied;
    begin_round(tied, true);
    if (!has_next_leader) tied.say(PrepareRound{.round = 4, .place = {.node_count = 2}});
    tied.other.keeps = false;
    const std::int64_t heard_ms = tied.now_ms;
    tied.pass(10'000);
    REQUIRE(tied.connects_ms.size() > 1);
    CHECK(tied.connects_ms[1] == heard_ms + (has_next_leader ? 4'000 : 5'000));
  }
}

TEST_CASE("a node that hears nothing for 2T/5 redirects nobody to its coordinator, but says when it will be free") {
  TiedLink tied;
  begin_round(tied, true);
  tied.other.keeps = false;
  tied.pass(1'999);
  CHECK(tied.link.hears_coordinator(tied.now_ms));
  CHECK_FALSE(tied.link.may_elect_from_ms(tied.now_ms));
  tied.pass(1);
  CHECK(tied.link.attached());
  CHECK_FALSE(tied.link.hears_coordinator(tied.now_ms));
  CHECK(tied.link.may_elect_from_ms(tied.now_ms) == tied.now_ms + 2'000);
  tied.other.keeps = true;
  tied.pass(1'000);
  CHECK(tied.link.hears_coordinator(tied.now_ms));
  tied.link.set_local(true);
  tied.other.keeps = false;
  tied.pass(3'000);
  CHECK(tied.link.hears_coordinator(tied.now_ms));
}

TEST_CASE("a node whose own coordinator transfers its leadership votes, and does not campaign itself") {
  for (const bool local : {true, false}) {
    TiedLink tied;
    tied.other.asks = true;
    tied.other.welcome.host = local ? 1 : 8;
    tied.link.set_local(local);
    tied.begin();
    tied.say(PrepareRound{.round = 3, .place = {.node_count = 2}, .next_leaders = {{.agent = 9, .port = 4}}});
    tied.pass(1'000);
    tied.reachable = false;
    tied.say(Resigned{"its node leaves", true});
    const auto left = std::ranges::find_if(
        tied.log, [](const Link::Effect& effect) { return std::holds_alternative<Link::Detached>(effect); });
    REQUIRE(left != tied.log.end());
    CHECK(std::get<Link::Detached>(*left).votes_for_ms == 10'000);
    CHECK(tied.link.may_elect_from_ms(tied.now_ms).has_value() != local);
  }
}

TEST_CASE(
    "a next leader that accepts the connection has T/5 to welcome the node, and one that does not accept it 250 ms") {
  for (const bool accepts : {true, false}) {
    TiedLink tied;
    tied.other.asks = true;
    tied.other.welcome.host = 8;
    tied.begin();
    tied.say(PrepareRound{
        .round = 3, .place = {.node_count = 2}, .next_leaders = {{.agent = 9, .port = 4}, {.agent = 10, .port = 5}}});
    tied.pass(1'000);
    (accepts ? tied.hears : tied.reachable) = false;
    tied.answers = false;
    const std::size_t before = tied.connects_ms.size();
    tied.say(Resigned{"its node leaves", true});
    tied.pass(1'500);
    REQUIRE(tied.connects_ms.size() > before + 1);
    CHECK(tied.connects_ms[before + 1] - tied.connects_ms[before] == (accepts ? 1'000 : 250));
  }
}

TEST_CASE("a coordinator that transfers its leadership is left at once, however short the session was") {
  TiedLink tied;
  tied.other.asks = true;
  tied.other.welcome.host = 8;
  tied.begin();
  tied.say(PrepareRound{.round = 3, .place = {.node_count = 2}, .next_leaders = {{.agent = 9, .port = 4}}});
  tied.pass(10);
  tied.say(Resigned{"its node leaves", true});
  tied.look();
  CHECK(tied.connects_ms.back() == tied.now_ms);
}

TEST_CASE(
    "a node that is done, and has said that it leaves, makes nobody a candidate while it looks for the next leader") {
  for (const bool is_done : {false, true}) {
    TiedLink tied({.agent = 9});
    begin_round(tied, true);
    if (is_done) tied.carry(tied.link.send(NodeLeaves{}));
    const std::size_t before = tied.other.introductions.size();
    tied.other.welcomes = false;
    tied.say(Resigned{"its node leaves", true});
    tied.pass(1'000);
    REQUIRE(tied.other.introductions.size() > before);
    for (std::size_t index = before; index < tied.other.introductions.size(); ++index) {
      CHECK(tied.other.introductions[index].may_begin != is_done);
    }
  }
}

TEST_CASE("a coordinator that resigns is left, and the node may vote for the next one at once") {
  TiedLink tied;
  tied.other.asks = true;
  tied.other.welcome.host = 8;
  tied.begin();
  tied.pass(1'000);
  REQUIRE(tied.other.acks.size() == 2);
  tied.other.welcome.term = 2;
  tied.other.welcome.host = 9;
  tied.say(Resigned{"too few nodes support it"});
  tied.look();
  CHECK(tied.count<Link::Detached>() == 1);
  CHECK(tied.link.attached());  // with the next session
  tied.look();
  REQUIRE(tied.other.acks.size() == 3);
  CHECK(tied.other.acks[2].voter_state);
}

TEST_CASE(
    "a job result of a round before one that the node's workers have run does not count, and the search goes on") {
  for (const RoundNumber verdicts_round : {2u, 3u}) {
    TiedLink tied({.rejoin_ms = 30'000});
    run_and_lose(tied, 1);
    const std::size_t delivered = tied.count<Link::Deliver>();
    tied.say(EndJob{.job_result = {.round = verdicts_round, .term = 1}});
    CHECK(tied.link.attached() == (verdicts_round == 3));
    CHECK(tied.count<Link::Deliver>() == delivered + (verdicts_round == 3 ? 1 : 0));
    CHECK(tied.given_up().empty());
  }
}

TEST_CASE("a new start of a node that was not elected is met at every place, and joined when all were asked") {
  TiedLink tied({.rejoin_ms = 30'000});
  begin_round(tied, true);
  tied.other.welcome.host = 9;
  tied.other.welcome.term = 2;
  tied.other.welcome.good_for_ms = 0;
  tied.other.good_for_ms = 0;
  tied.reachable = false;
  tied.broken();
  tied.reachable = true;
  tied.pass_until_attached();
  REQUIRE(tied.link.attached());
  const std::size_t before = tied.connects_ms.size();
  tied.say(Resigned{"it was not elected"});
  tied.pass_until_attached();
  REQUIRE(tied.link.attached());
  // The two peer ports twice, and the probes before each.
  CHECK(tied.connects_ms.size() - before > 4);
}

TEST_CASE("an old job result is one answer in a search, which goes on behind it and opens a peer port in the end") {
  TiedLink tied({.rejoin_ms = 30'000});
  run_and_lose(tied, 1);
  tied.reachable = false;
  tied.broken();
  tied.pass(6'000);  // its vote has ended
  // Each process that is asked gives an old job result, and grants nothing.
  tied.other.keeps = false;
  tied.reachable = true;
  tied.pass_until_attached();
  for (int asked = 0; asked < 6; ++asked) {
    tied.say(EndJob{.job_result = {.round = 2, .term = 1}});
    tied.pass_until_attached();
    REQUIRE(tied.link.attached());
  }
  const std::size_t last = tied.other.introductions.size() - 4;
  const auto opens = [](const Introduction& introduction) { return introduction.may_begin; };
  CHECK(std::any_of(tied.other.introductions.begin() + static_cast<std::ptrdiff_t>(last),
                    tied.other.introductions.end(), opens));
}

TEST_CASE(
    "a job result of a coordinator before the one whose round the node's workers have run does not count, either") {
  for (const Term verdicts_term : {1u, 2u}) {
    TiedLink tied({.rejoin_ms = 30'000});
    // The coordinator that has ended the job takes a higher term when a node that has met one joins.
    run_and_lose(tied, 2);
    tied.say(EndJob{.job_result = {.round = 3, .term = verdicts_term}});
    CHECK(tied.link.attached() == (verdicts_term == 2));
  }
}

TEST_CASE("a node votes for no candidate of another start of its job, and joins that start's coordinator") {
  for (const bool is_candidate : {true, false}) {
    TiedLink tied;
    begin_round(tied, true);
    tied.link.belongs();
    tied.other.welcome.incarnation = 8;
    tied.other.welcome.host = 9;
    tied.other.welcome.term = 2;
    if (is_candidate) tied.other.welcome.good_for_ms = 0;
    tied.broken();
    tied.pass(3'000);
    CHECK(tied.link.attached() != is_candidate);
  }
}

TEST_CASE("a node that is done, and has said that it leaves, does not campaign") {
  for (const int signal : {0, SIGTERM}) {
    TiedLink tied;
    begin_round(tied, false);
    tied.carry(tied.link.send(NodeLeaves{signal}));
    tied.reachable = false;
    tied.broken();
    tied.pass(5'000);
    CHECK(tied.link.may_elect_from_ms(tied.now_ms).has_value() == (signal != 0));
  }
}

TEST_CASE(
    "a node whose coordinator has ceased to ask for votes says in the next vote that others may run under its leases") {
  for (const bool asks : {true, false}) {
    TiedLink tied;
    begin_round(tied, false);
    tied.other.asks = asks;
    tied.pass(2'000);
    tied.reachable = false;
    tied.broken();
    tied.pass(4'000);
    REQUIRE(is_free(tied));
    const std::size_t before = tied.other.acks.size();
    tied.reachable = tied.other.asks = true;
    tied.other.welcome.term = 2;
    tied.other.welcome.host = 9;
    tied.pass(3'000);
    REQUIRE(tied.other.acks.size() > before);
    CHECK(tied.other.acks[before].voter_state->others_may_run_for_ms == (asks ? 100 : LeaseTimes{5'000}.over_ms()));
  }
}

TEST_CASE("after a candidate that was not elected the next peer port is asked a little later, and only probed") {
  std::vector<std::int64_t> pauses_ms;
  for (const std::uint64_t seed : {1ULL, 2ULL, 3ULL}) {
    TiedLink tied({.seed = seed});
    begin_round(tied, true);
    tied.other.welcome.term = 2;
    tied.other.welcome.host = 9;
    tied.other.good_for_ms = 0;  // a candidate
    tied.broken();
    tied.pass(2'000);
    REQUIRE(tied.link.attached());
    CHECK(tied.other.introductions.back().may_begin);
    tied.other.welcomes = false;
    const std::int64_t resigned_ms = tied.now_ms;
    const std::size_t before = tied.other.introductions.size();
    tied.say(Resigned{"it was not elected"});
    tied.pass(1'000);
    pauses_ms.push_back(*std::ranges::lower_bound(tied.connects_ms, resigned_ms) - resigned_ms);
    CHECK(pauses_ms.back() <= 500);
    REQUIRE(tied.other.introductions.size() > before);
    CHECK_FALSE(tied.other.introductions[before].may_begin);
  }
  CHECK(std::ranges::max(pauses_ms) > std::ranges::min(pauses_ms));
}

TEST_CASE("a link that has voted for one coordinator does not answer another one that asks for its vote") {
  TiedLink tied;
  tied.other.asks = true;
  tied.other.welcome.host = 8;
  tied.begin();
  tied.other.welcome.term = 2;
  tied.other.welcome.host = 9;
  tied.pass(1'000);
  tied.broken();
  REQUIRE(tied.link.attached());
  CHECK(tied.other.acks.size() == 2);
  tied.pass(5'000);
  CHECK(tied.other.acks.size() > 2);
  CHECK(tied.other.acks[2].voter_state);
}

TEST_CASE("a coordinator that has led for long, and has to be elected again when it is lost, is looked for as long") {
  TiedLink tied({.rejoin_ms = 30'000});
  begin_round(tied, true);
  tied.link.belongs();
  tied.pass(100'000);
  tied.other.good_for_ms = 0;
  tied.pass(1'500);
  tied.reachable = false;
  tied.broken();
  tied.pass(31'000);
  CHECK(tied.given_up().empty());
  tied.pass(2'000);
  CHECK(tied.given_up() == "lost the coordinator and could not reconnect: connection refused");
}

TEST_CASE("a node that is refused elsewhere ends with that, and not with the election that it loses meanwhile") {
  for (const bool is_local : {true, false}) {
    TiedLink tied({.rejoin_ms = 30'000});
    begin_round(tied, true);
    tied.link.belongs();
    tied.other.welcomes = false;
    tied.broken();
    REQUIRE(tied.other.session);
    ByteString refusal;
    tied.other.session->refuse("this coordinator serves job x and no other", refusal, {.knows_nothing = true});
    tied.receive(refusal);
    tied.other.welcomes = true;
    tied.other.welcome.term = 2;
    tied.other.welcome.host = 9;
    tied.other.good_for_ms = 0;
    tied.other.asks = true;
    tied.link.set_local(is_local);
    tied.pass_until_attached();
    REQUIRE(tied.link.attached());
    tied.pass(1'000);
    tied.say(Resigned{"it was not elected"});
    tied.link.set_local(false);
    REQUIRE(tied.link.waiting());
    const std::string is_waiting = tied.link.waiting()->what;
    CHECK((is_waiting.find("serves job x and no other") != std::string::npos) == is_local);
    CHECK((is_waiting.find("not elected") != std::string::npos) != is_local);
  }
}
