#include "rendezvous/agent/link.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>

#include "rendezvous/agent/link_test_support.h"
#include "src/base/check_test_support.h"

namespace elastic::agent {

// Breaks what holds of a link.
struct LinkBreaker {
  static void drop_session(Link& link) { link.session_.reset(); }
  static void forget_connection(Link& link) { link.has_connection_ = false; }
  static void keep_connection(Link& link) { link.has_connection_ = true; }
  static void know_later_term(Link& link) { link.term_ += 1; }
  static void forget_that_it_was_attached(Link& link) { link.was_attached_ = false; }
  static void greet_for_no_time(Link& link) { link.greet_until_ms_ = link.try_at_ms_; }
  static void join_before_it_tries(Link& link) { link.joined_ms_ = link.try_at_ms_ - 1; }
  static void hear_before_it_is_attached(Link& link) { link.heard_ms_ = link.attached_ms_ - 1; }
  static void keep_alive_before_it_is_attached(Link& link) { link.keep_alive_at_ms_ = link.attached_ms_ - 1; }
  static void know_no_loss_timeout(Link& link) { link.lease_ = {0}; }
  static void borrow(Link& link) { link.lease_until_ms_ = 1; }
};

}  // namespace elastic::agent

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::agent::testing;
using namespace elastic::protocol;

namespace {

// A link whose owner is set by hand, and a coordinator that can be taken away.
struct Tied {
  explicit Tied(LinkSettings settings = {}, std::string secret = "")
      : link([&] {
          settings.job = "j";
          return settings;
        }()),
        other(std::move(secret)) {}

  // Performs the link's effects, and those that follow from that.
  void carry(Link::Effects effects) {
    for (Link::Effect& effect : effects) {
      log.push_back(effect);
      if (std::holds_alternative<Link::Connect>(effect)) {
        connects_ms.push_back(now_ms);
        if (!reachable) {
          if (answers) carry(link.broken("connection refused", true, owner, now_ms));
          continue;
        }
        other.accept();
        carry(link.connected({.is_same_place = is_same_place}, now_ms));
      }
      if (std::holds_alternative<Link::Joining>(effect)) carry(link.send(NodeJoins{.local_world_size = 1}));
      if (auto* write = std::get_if<Link::Write>(&effect)) {
        if (hears) receive(other.take(write->bytes));
      }
    }
    link.check_invariants();
  }
  void receive(const ByteString& bytes) {
    if (!bytes.empty()) carry(link.received(bytes, owner, now_ms));
  }
  void say(const CoordinatorMessage& message) { receive(other.say(message)); }
  void look() { carry(link.look(owner, now_ms)); }
  void begin() {
    carry(link.begin(now_ms));
    look();
  }
  void broken(const std::string& why = "reset") {
    carry(link.broken(why, false, owner, now_ms));
    look();
  }
  // Lets time pass, and calls look() at each deadline of the link.
  void pass(std::int64_t ms) {
    const std::int64_t until_ms = now_ms + ms;
    for (int wakes = 0;; ++wakes) {
      REQUIRE(wakes < 100'000);
      const auto next_ms = link.next_deadline_ms(owner);
      if (!next_ms || *next_ms > until_ms) break;
      now_ms = std::max(now_ms, *next_ms);
      carry(link.look(owner, now_ms));
    }
    now_ms = until_ms;
  }
  void pass_until_attached() {
    for (int ms = 0; ms < 3000 && !link.attached(); ++ms) pass(1);
  }
  template <class Kind>
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(log, [](const Link::Effect& effect) { return std::holds_alternative<Kind>(effect); }));
  }
  std::string given_up() const {
    for (const Link::Effect& effect : log) {
      if (const auto* found = std::get_if<Link::GiveUp>(&effect)) return found->reason;
    }
    return "";
  }

  Link link;
  Other other;
  Link::Owner owner;
  std::int64_t now_ms = 1'000'000;
  bool is_same_place = true;  // of the next connections
  bool reachable = true;      // connections are made
  bool answers = true;        // a connection that cannot be made is refused at once
  bool hears = true;          // what the link writes arrives
  std::vector<Link::Effect> log;
  std::vector<std::int64_t> connects_ms;
};

}  // namespace

TEST_CASE("a link connects at once, introduces the node, joins and is attached") {
  Tied tied({.agent = 3});
  tied.begin();
  CHECK(tied.link.attached());
  CHECK(tied.other.introductions == std::vector<Introduction>{{"j", 3, 0, 0}});
  CHECK(tied.other.last<NodeJoins>() != nullptr);
  CHECK(tied.link.term() == 1);
  CHECK(tied.link.incarnation() == 7);
  CHECK(tied.link.own_incarnation() == 0);
}

TEST_CASE("keep-alives go out each fifth of the loss timeout, and the lease is counted from when they were sent") {
  Tied tied;
  tied.begin();
  CHECK(tied.other.keep_alives == 1);
  tied.pass(10'000);
  CHECK(tied.other.keep_alives == 11);
  CHECK(tied.link.lease_until_ms() == tied.now_ms + 3000);
  tied.other.keeps = false;
  tied.pass(1000);
  tied.now_ms += 500;
  ByteString answer;
  tied.other.session->kept(static_cast<std::uint64_t>(tied.other.keep_alives), {}, false, answer);
  tied.receive(answer);  // half a second after the keep-alive was sent
  CHECK(tied.link.lease_until_ms() == tied.now_ms - 500 + 3000);
}

TEST_CASE("a lease lasts no longer than whoever lends it may act, from the welcome on") {
  Tied tied;
  tied.other.welcome.good_for_ms = 500;
  tied.other.keeps = false;
  tied.begin();
  CHECK(tied.link.lease_until_ms() == tied.now_ms + 500);
  tied.other.keeps = true;
  tied.other.good_for_ms = 1'500;
  tied.pass(1'000);
  CHECK(tied.link.lease_until_ms() == tied.now_ms + 1'500);
  tied.other.good_for_ms = 9'000;  // it is cut to the length of a lease
  tied.pass(1'000);
  CHECK(tied.link.lease_until_ms() == tied.now_ms + 3'000);
  tied.other.good_for_ms = -5;  // the lease that was granted before stays
  tied.pass(1'000);
  CHECK(tied.link.lease_until_ms() == tied.now_ms + 2'000);
}

TEST_CASE("a link promises its support to the coordinator that asks for it, and testifies with the first promise") {
  Tied tied;
  tied.begin();
  CHECK(tied.other.promises.empty());
  tied.say(PrepareRound{.round = 3, .place = {1, 2, 1, 2, 1, 2}, .membership = 9});
  CHECK(tied.other.last<RoundHeard>() == nullptr);  // no round before it counts
  tied.other.asks = true;
  tied.pass(1'000);
  REQUIRE(tied.other.promises.size() == 1);
  REQUIRE(tied.other.promises[0].testimony);
  CHECK(tied.other.promises[0].testimony->rounds.at(0).rank == 1);
  tied.pass(1'000);
  REQUIRE(tied.other.promises.size() == 2);
  CHECK_FALSE(tied.other.promises[1].testimony);
  CHECK(tied.other.promises[1].number == static_cast<std::uint64_t>(tied.other.keep_alives));
  tied.say(PrepareRound{.round = 4, .place = {1, 2, 1, 2, 1, 2}, .membership = 10, .before = {{1, 3, 9, 2, 0}}});
  REQUIRE(tied.other.last<RoundHeard>() != nullptr);
  CHECK(tied.other.last<RoundHeard>()->round == 4);
  tied.say(NextRound{{1, 5, 11, 2, 0}, {{1, 3, 9, 2, 0}}});  // it is not in this one
  CHECK(tied.other.last<RoundHeard>()->round == 5);
  CHECK(tied.link.promises().rounds().rounds().back().rank == std::nullopt);
}

namespace {

// A node in a round whose coordinator, in the process of agent 8, has asked for its support.
void begin_round(Tied& tied, bool refusal_is_proof) {
  tied.other.asks = true;
  tied.other.welcome.host = 8;
  tied.begin();
  tied.say(PrepareRound{.round = 3,
                        .place = {.node_count = 2},
                        .successors = {{.agent = 8, .port = 4}},
                        .refusal_is_proof = refusal_is_proof});
  tied.pass(1'000);
}

}  // namespace

TEST_CASE("a refused connection proves the coordinator's death unless the job's rules say that it does not") {
  for (const bool is_proof : {true, false}) {
    Tied tied;
    begin_round(tied, is_proof);
    tied.reachable = false;
    tied.broken();
    CHECK(tied.link.promises().is_free(tied.now_ms) == is_proof);
  }
}

TEST_CASE("another process at the lost coordinator's port is a proof, too, but only where that was reached") {
  struct Case {
    bool is_proof;
    bool is_same_place;
  };
  for (const Case& each : {Case{true, true}, Case{false, true}, Case{true, false}}) {
    Tied tied;
    begin_round(tied, each.is_proof);
    const std::size_t before = tied.other.promises.size();
    tied.other.welcome.term = 2;
    tied.other.welcome.host = 9;
    tied.is_same_place = each.is_same_place;
    tied.broken();
    tied.look();
    tied.pass(1'000);
    CHECK((tied.other.promises.size() > before) == (each.is_proof && each.is_same_place));
  }
}

TEST_CASE(
    "a node whose coordinator is lost before it has asked for the node's support looks for the next one all the same") {
  for (const bool is_refused : {true, false}) {
    Tied tied;
    tied.other.welcome.host = 8;
    tied.begin();
    tied.say(PrepareRound{.round = 3, .place = {.node_count = 2}, .successors = {{.agent = 8, .port = 4}}});
    tied.pass(1'000);
    CHECK(tied.other.promises.empty());
    tied.reachable = false;
    tied.answers = is_refused;
    tied.broken();
    CHECK(tied.link.promises().is_free(tied.now_ms) == is_refused);
    tied.pass(4'000);
    CHECK(tied.link.may_elect_from_ms(tied.now_ms) == 0);
  }
}

TEST_CASE("a node whose own coordinator hands over votes, and does not stand itself") {
  for (const bool local : {true, false}) {
    Tied tied;
    tied.other.asks = true;
    tied.other.welcome.host = local ? 1 : 8;
    tied.link.set_local(local);
    tied.begin();
    tied.say(PrepareRound{.round = 3, .place = {.node_count = 2}, .successors = {{.agent = 9, .port = 4}}});
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

TEST_CASE("a coordinator that hands over is left at once, however short the session was") {
  Tied tied;
  tied.other.asks = true;
  tied.other.welcome.host = 8;
  tied.begin();
  tied.say(PrepareRound{.round = 3, .place = {.node_count = 2}, .successors = {{.agent = 9, .port = 4}}});
  tied.pass(10);
  tied.say(Resigned{"its node leaves", true});
  tied.look();
  CHECK(tied.connects_ms.back() == tied.now_ms);
}

TEST_CASE("a coordinator that resigns is left, and the next one may be supported at once") {
  Tied tied;
  tied.other.asks = true;
  tied.other.welcome.host = 8;
  tied.begin();
  tied.pass(1'000);
  REQUIRE(tied.other.promises.size() == 2);
  tied.other.welcome.term = 2;
  tied.other.welcome.host = 9;
  tied.say(Resigned{"too few nodes support it"});
  tied.look();
  CHECK(tied.count<Link::Detached>() == 1);
  CHECK(tied.link.attached());  // with the next session
  tied.look();
  REQUIRE(tied.other.promises.size() == 3);
  CHECK(tied.other.promises[2].testimony);
}

TEST_CASE(
    "a verdict of an earlier round than one that the node's workers have run in is none, and the search goes on") {
  for (const RoundNumber verdicts_round : {2u, 3u}) {
    Tied tied({.rejoin_ms = 30'000});
    begin_round(tied, true);
    tied.link.belongs();
    tied.say(RunWorkers{3, {"h", 1}});
    tied.other.welcome.term = 2;
    tied.other.welcome.host = 9;
    tied.broken();
    tied.pass(3'000);
    REQUIRE(tied.link.attached());
    const std::size_t delivered = tied.count<Link::Deliver>();
    tied.say(EndJob{.verdict = {.round = verdicts_round}});
    CHECK(tied.link.attached() == (verdicts_round == 3));
    CHECK(tied.count<Link::Deliver>() == delivered + (verdicts_round == 3 ? 1 : 0));
    CHECK(tied.given_up().empty());
  }
}

TEST_CASE("a node votes for no candidate of another start of its job, and joins that start's coordinator") {
  for (const bool is_candidate : {true, false}) {
    Tied tied;
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

TEST_CASE("a node that is done, and has said that it leaves, stands for no election") {
  for (const int signal : {0, SIGTERM}) {
    Tied tied;
    begin_round(tied, false);
    tied.carry(tied.link.send(NodeLeaves{signal}));
    tied.reachable = false;
    tied.broken();
    tied.pass(5'000);
    CHECK(tied.link.may_elect_from_ms(tied.now_ms).has_value() == (signal != 0));
  }
}

TEST_CASE("a node whose coordinator has ceased to ask testifies that others may run under its leases") {
  for (const bool asks : {true, false}) {
    Tied tied;
    begin_round(tied, false);
    tied.other.asks = asks;
    tied.pass(2'000);
    tied.reachable = false;
    tied.broken();
    tied.pass(4'000);
    REQUIRE(tied.link.promises().is_free(tied.now_ms));
    const std::size_t before = tied.other.promises.size();
    tied.reachable = tied.other.asks = true;
    tied.other.welcome.term = 2;
    tied.other.welcome.host = 9;
    tied.pass(3'000);
    REQUIRE(tied.other.promises.size() > before);
    CHECK(tied.other.promises[before].testimony->others_may_run_for_ms == (asks ? 100 : LeaseTimes{5'000}.over_ms()));
  }
}

TEST_CASE("after a candidate that was not elected the next door is asked a little later, and not to make one") {
  std::vector<std::int64_t> pauses_ms;
  for (const std::uint64_t seed : {1ULL, 2ULL, 3ULL}) {
    Tied tied({.seed = seed});
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

TEST_CASE("a link that has promised its support to one coordinator does not answer another one that asks") {
  Tied tied;
  tied.other.asks = true;
  tied.other.welcome.host = 8;
  tied.begin();
  tied.other.welcome.term = 2;
  tied.other.welcome.host = 9;
  tied.pass(1'000);
  tied.broken();
  REQUIRE(tied.link.attached());
  CHECK(tied.other.promises.size() == 2);
  tied.pass(5'000);
  CHECK(tied.other.promises.size() > 2);
  CHECK(tied.other.promises[2].testimony);
}

TEST_CASE("when the lease is over the owner hears it once, and nothing is connected until it allows it") {
  Tied tied;
  tied.owner.needs_lease = true;
  tied.begin();
  tied.hears = false;  // the network is cut
  tied.pass(2999);
  CHECK(tied.count<Link::LeaseOver>() == 0);
  tied.owner.may_connect = false;  // while its workers are there
  tied.pass(1);
  CHECK(tied.count<Link::LeaseOver>() == 1);
  CHECK(tied.count<Link::Detached>() == 1);
  tied.pass(20'000);
  CHECK(tied.count<Link::LeaseOver>() == 1);
  CHECK(tied.connects_ms.size() == 1);
  tied.hears = true;
  tied.owner = {};
  tied.look();
  CHECK(tied.link.attached());
}

TEST_CASE("the lease of whoever needs none does not end anything") {
  Tied tied;
  tied.begin();
  tied.hears = false;
  tied.pass(4900);
  CHECK(tied.count<Link::LeaseOver>() == 0);
  CHECK(tied.link.attached());
}

TEST_CASE("bytes that come after the lease is over are not looked at before the workers are gone") {
  Tied tied;
  tied.owner.needs_lease = true;
  tied.begin();
  const ByteString late = tied.other.say(StopWorkers{});
  tied.now_ms += 60'000;  // the process was stopped for so long
  tied.receive(late);
  CHECK(tied.count<Link::LeaseOver>() == 1);
  CHECK(tied.count<Link::Deliver>() == 0);
}

TEST_CASE("a welcome extends no lease of workers that are there: only what is kept by the new session does") {
  Tied tied;
  tied.owner.needs_lease = true;
  tied.begin();
  const auto until_ms = tied.link.lease_until_ms();
  tied.other.keeps = false;
  tied.pass(2000);
  tied.broken();
  CHECK(tied.link.attached());
  CHECK(tied.link.lease_until_ms() == until_ms);
  tied.pass(999);
  CHECK(tied.count<Link::LeaseOver>() == 0);
  tied.pass(1);
  CHECK(tied.count<Link::LeaseOver>() == 1);
}

TEST_CASE("a connection that breaks is made again at once, and a silent coordinator is left after the loss timeout") {
  Tied tied;
  tied.begin();
  tied.pass(1000);
  tied.broken();
  CHECK(tied.link.attached());
  CHECK(tied.connects_ms.size() == 2);
  tied.other.keeps = false;
  const std::int64_t heard_ms = tied.now_ms;
  tied.pass(4999);
  CHECK(tied.connects_ms.size() == 2);
  tied.pass(1);
  CHECK(tied.connects_ms.size() == 3);
  CHECK(tied.connects_ms.back() == heard_ms + 5000);
}

TEST_CASE("bytes that never become a word do not keep a session alive") {
  Tied tied;
  tied.begin();
  tied.other.keeps = false;
  tied.receive({0x00, 0x00, 0x40, 0x00});  // the length of a frame of 16 KiB
  for (int time = 0; time < 50; ++time) {
    CHECK(tied.connects_ms.size() == 1);
    tied.receive({0x00});
    tied.pass(100);
  }
  CHECK(tied.connects_ms.size() == 2);
}

TEST_CASE("sessions that are cut off as soon as they begin become rarer, too, until one has lasted") {
  Tied tied;
  tied.begin();
  std::vector<std::int64_t> pauses_ms;
  for (int time = 0; time < 12; ++time) {
    REQUIRE(tied.link.attached());
    tied.pass(time % 2 == 0 ? 0 : 999);
    tied.broken();
    CHECK(!tied.link.attached());
    const std::int64_t cut_ms = tied.now_ms;
    tied.pass_until_attached();
    pauses_ms.push_back(tied.connects_ms.back() - cut_ms);
  }
  CHECK(pauses_ms.front() >= 25);
  CHECK(pauses_ms.front() <= 50);
  CHECK(std::ranges::max(pauses_ms) <= 2000);
  CHECK(pauses_ms.back() >= 1000);
  tied.pass(1000);
  tied.broken();
  CHECK(tied.link.attached());
  tied.broken();
  const std::int64_t cut_ms = tied.now_ms;
  CHECK(!tied.link.attached());
  tied.pass(50);
  CHECK(tied.link.attached());
  CHECK(tied.connects_ms.back() >= cut_ms + 25);
}

TEST_CASE("a session in which garbage is said is one that was cut off, and attempts go on becoming rarer") {
  Tied tied;
  tied.begin();
  for (int time = 0; time < 8; ++time) {
    REQUIRE(tied.link.attached());
    tied.receive(ByteString(64, 0xff));
    CHECK(!tied.link.attached());
    tied.pass_until_attached();
  }
  CHECK(tied.connects_ms.end()[-1] - tied.connects_ms.end()[-2] >= 1000);
}

TEST_CASE("attempts become rarer up to two seconds, and agents do not come in step") {
  std::vector<std::vector<std::int64_t>> gaps;
  for (const std::uint64_t seed : {1ULL, 2ULL}) {
    Tied tied({.seed = seed});
    tied.reachable = false;
    tied.begin();
    tied.pass(60'000);
    gaps.emplace_back();
    for (std::size_t i = 1; i < tied.connects_ms.size(); ++i) {
      gaps.back().push_back(tied.connects_ms[i] - tied.connects_ms[i - 1]);
    }
    CHECK(gaps.back().front() >= 25);
    CHECK(gaps.back().front() <= 50);
    CHECK(std::ranges::max(gaps.back()) <= 2300);
    CHECK(std::ranges::min(gaps.back().end()[-1], gaps.back().end()[-2]) >= 1000);
    CHECK(tied.connects_ms.size() < 70);
  }
  CHECK(gaps[0] != gaps[1]);
}

TEST_CASE("a connection that is not answered, or accepted in silence, is given up after the greeting time") {
  for (const bool accepts : {false, true}) {
    Tied tied({.greeting_ms = 700});
    tied.reachable = accepts;
    tied.answers = false;
    tied.hears = false;
    tied.begin();
    tied.pass(699);
    CHECK(tied.count<Link::Disconnect>() == 0);
    tied.pass(1);
    CHECK(tied.count<Link::Disconnect>() == 1);
    tied.pass(100);
    CHECK(tied.connects_ms.size() == 2);
  }
}

TEST_CASE("a node that was in no round looks for the join timeout, and says what was wrong last") {
  Tied tied({.join_timeout_ms = 20'000});
  tied.reachable = false;
  tied.begin();
  tied.pass(19'999);
  CHECK(tied.given_up().empty());
  tied.pass(1);
  CHECK(tied.given_up() == "found no coordinator within 20 s: connection refused");
  CHECK(!tied.link.next_deadline_ms(tied.owner));
  const std::size_t attempts = tied.connects_ms.size();
  tied.pass(60'000);
  CHECK(tied.connects_ms.size() == attempts);
}

TEST_CASE("a node of the job looks for a lost coordinator for the lease and the time to rejoin") {
  Tied tied({.rejoin_ms = 30'000});
  tied.begin();
  tied.link.belongs();
  tied.pass(100'000);
  tied.reachable = false;
  tied.broken();
  tied.pass(32'999);
  CHECK(tied.given_up().empty());
  tied.pass(1);
  CHECK(tied.given_up() == "lost the coordinator and could not reconnect: connection refused");
}

TEST_CASE("a coordinator that has led for long, and has to be elected again when it is lost, is looked for as long") {
  Tied tied({.rejoin_ms = 30'000});
  tied.other.asks = true;
  tied.begin();
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

TEST_CASE("who belongs to a job says so in its next introduction, with the highest term that it has met") {
  Tied tied;
  tied.begin();
  tied.link.belongs();
  tied.other.welcome.term = 4;
  tied.pass(1000);
  tied.broken();
  tied.pass(1000);
  tied.broken();
  CHECK(tied.other.introductions.at(1) == Introduction{"j", 1, 7, 1});
  CHECK(tied.other.introductions.at(2) == Introduction{"j", 1, 7, 4});
}

TEST_CASE("a coordinator of an older term is not followed, and another is looked for") {
  Tied tied;
  tied.other.welcome.term = 4;
  tied.begin();
  tied.other.welcome.term = 3;
  tied.broken();
  CHECK(!tied.link.attached());
  CHECK(tied.given_up().empty());
  tied.other.welcome.term = 5;
  tied.pass(1000);
  CHECK(tied.link.attached());
  CHECK(tied.link.term() == 5);
}

TEST_CASE("another secret is an error at once, except from a coordinator after the first, which is waited out") {
  Tied tied({.secret = "s"}, "t");
  tied.begin();
  CHECK(tied.given_up().find("secret") != std::string::npos);
  CHECK(tied.connects_ms.size() == 1);
  Tied later({.secret = "s"}, "s");
  later.begin();
  later.other.secret = "t";
  later.broken();
  CHECK(later.given_up().empty());
  later.other.secret = "s";
  later.pass(1000);
  CHECK(later.link.attached());
}

TEST_CASE("who is turned away comes again when it was told to, or never") {
  Tied tied;
  tied.begin();
  tied.carry(tied.link.rejected("no", 40'000, tied.now_ms));
  CHECK(tied.count<Link::Detached>() == 1);
  tied.pass(39'999);
  CHECK(tied.connects_ms.size() == 1);
  tied.pass(1);
  CHECK(tied.link.attached());
  tied.carry(tied.link.rejected("no", {}, tied.now_ms));
  CHECK(!tied.link.next_deadline_ms(tied.owner));
  tied.pass(1'000'000);
  CHECK(tied.connects_ms.size() == 2);
}

TEST_CASE("a long rejection does not use up the time that a coordinator is looked for") {
  Tied tied({.rejoin_ms = 1000});
  tied.begin();
  tied.link.belongs();
  tied.carry(tied.link.rejected("no", 300'000, tied.now_ms));
  tied.pass(300'000);
  CHECK(tied.given_up().empty());
  CHECK(tied.link.attached());
}

TEST_CASE("a node that is asked whether it lives answers at once, and its owner hears nothing of it") {
  Tied tied;
  tied.begin();
  const int before = tied.other.keep_alives;
  tied.say(AreYouThere{});
  CHECK(tied.other.keep_alives == before + 1);
  CHECK(tied.count<Link::Deliver>() == 0);
}

TEST_CASE("what is said where no session is open is lost, and after the link was closed nothing is done") {
  Tied tied;
  tied.reachable = false;
  tied.begin();
  CHECK(tied.link.send(WorkersSucceeded{0}).empty());
  tied.reachable = true;
  tied.pass(1000);
  REQUIRE(tied.link.attached());
  tied.link.close();
  CHECK(tied.link.look(tied.owner, tied.now_ms + 100'000).empty());
  CHECK(tied.link.broken("reset", false, tied.owner, tied.now_ms).empty());
  CHECK(!tied.link.next_deadline_ms(tied.owner));
}

TEST_CASE("a link whose session, connection or times are not of its state is noticed") {
  const auto noticed = [](void (*broken)(Link&), LinkSettings settings = {}) {
    Tied tied(std::move(settings));
    tied.begin();
    REQUIRE(tied.link.attached());
    broken(tied.link);
    return failed_check([&] { tied.link.check_invariants(); });
  };
  const std::string times =
      "joined_ms_ <= attached_ms_ && attached_ms_ <= heard_ms_ && attached_ms_ <= keep_alive_at_ms_";
  const std::string connection = "has_connection_ == (is_greeted || state_ == State::kConnecting)";
  CHECK(noticed([](Link&) {}).empty());
  CHECK(noticed(LinkBreaker::drop_session) == "session_.has_value() == is_greeted");
  CHECK(noticed(LinkBreaker::forget_connection) == connection);
  CHECK(noticed(LinkBreaker::know_later_term) == "!session_ || session_->welcome().term >= term_");
  CHECK(noticed(LinkBreaker::forget_that_it_was_attached) ==
        "was_attached_ || (!lease_until_ms_ && own_incarnation_ == 0)");
  CHECK(noticed(LinkBreaker::greet_for_no_time) == "greet_until_ms_ > try_at_ms_");
  CHECK(noticed(LinkBreaker::join_before_it_tries) == "joined_ms_ >= try_at_ms_");
  CHECK(noticed(LinkBreaker::hear_before_it_is_attached) == times);
  CHECK(noticed(LinkBreaker::keep_alive_before_it_is_attached) == times);
  CHECK(noticed(LinkBreaker::know_no_loss_timeout) == "was_attached_ && lease_.loss_timeout_ms > 0");
  CHECK(noticed(LinkBreaker::borrow, {.in_process = true}) == "!has_connection_ && !session_ && !lease_until_ms_");
}

TEST_CASE("a link does not connect while it has a connection") {
  Tied tied;
  tied.reachable = false;
  tied.begin();
  REQUIRE(!tied.link.attached());
  LinkBreaker::keep_connection(tied.link);
  CHECK(failed_check([&] { tied.pass(10'000); }) == "!has_connection_");
}
