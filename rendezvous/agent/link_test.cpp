#include "rendezvous/agent/link.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>

#include "rendezvous/agent/link_test_support.h"
#include "src/base/check_test_support.h"

namespace elastic::agent {

// Breaks the invariants of a link.
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
};

}  // namespace elastic::agent

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::agent::testing;
using namespace elastic::protocol;

TEST_CASE("a link connects at once, introduces the node, joins and is attached") {
  TiedLink tied({.agent = 3});
  tied.begin();
  CHECK(tied.link.attached());
  CHECK(tied.other.introductions == std::vector<Introduction>{{"j", 3, 0, 0}});
  CHECK(tied.other.last<NodeJoins>() != nullptr);
  CHECK(tied.link.term() == 1);
  CHECK(tied.link.incarnation() == 7);
  CHECK(tied.link.own_incarnation() == 0);
}

TEST_CASE("keep-alives go out each fifth of the loss timeout, and the lease is counted from when they were sent") {
  TiedLink tied;
  tied.begin();
  CHECK(tied.other.keep_alives == 1);
  tied.pass(10'000);
  CHECK(tied.other.keep_alives == 11);
  CHECK(tied.link.lease_until_ms() == tied.now_ms + 3000);
  tied.other.keeps = false;
  tied.pass(1000);
  tied.now_ms += 500;
  ByteString answer;
  tied.other.session->grant_lease(static_cast<std::uint64_t>(tied.other.keep_alives), {}, false, answer);
  tied.receive(answer);  // half a second after the keep-alive was sent
  CHECK(tied.link.lease_until_ms() == tied.now_ms - 500 + 3000);
}

TEST_CASE("a lease lasts no longer than the coordinator that grants it may act, from the welcome on") {
  TiedLink tied;
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

TEST_CASE("when the lease is over the owner hears it once, and nothing is connected until it allows it") {
  TiedLink tied;
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
  TiedLink tied;
  tied.begin();
  tied.hears = false;
  tied.pass(4900);
  CHECK(tied.count<Link::LeaseOver>() == 0);
  CHECK(tied.link.attached());
}

TEST_CASE("bytes that come after the lease is over are not looked at before the workers are gone") {
  TiedLink tied;
  tied.owner.needs_lease = true;
  tied.begin();
  const ByteString late = tied.other.say(StopWorkers{});
  tied.now_ms += 60'000;  // the process was stopped for so long
  tied.receive(late);
  CHECK(tied.count<Link::LeaseOver>() == 1);
  CHECK(tied.count<Link::Deliver>() == 0);
}

TEST_CASE("a welcome extends no lease of workers that are there: only a lease grant of the new session does") {
  TiedLink tied;
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
  TiedLink tied;
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

TEST_CASE("bytes that never become a frame do not keep a session alive") {
  TiedLink tied;
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
  TiedLink tied;
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
  TiedLink tied;
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
    TiedLink tied({.seed = seed});
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
    TiedLink tied({.greeting_ms = 700});
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
  TiedLink tied({.join_timeout_ms = 20'000});
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

namespace {

// Brings the node into a round. Without `next_leaders` nobody but its coordinator can lead the job.
void join_round(TiedLink& tied, std::vector<NextLeader> next_leaders = {}) {
  tied.begin();
  tied.say(PrepareRound{.place = {.node_count = 2}, .next_leaders = std::move(next_leaders)});
  tied.link.belongs();
  tied.pass(100'000);
}

const std::string kBound = "lost the coordinator and could not reconnect in time, and no other node can take over";

}  // namespace

TEST_CASE("a node of the job looks for a lost coordinator for the lease, and where it can be replaced for longer") {
  for (const bool can_be_replaced : {true, false}) {
    CAPTURE(can_be_replaced);
    TiedLink tied({.rejoin_ms = 30'000});
    join_round(tied, can_be_replaced ? std::vector<NextLeader>{{.agent = 8, .port = 4}} : std::vector<NextLeader>{});
    tied.reachable = false;
    tied.broken();
    tied.pass(can_be_replaced ? 32'999 : 2'999);
    CHECK(tied.given_up().empty());
    tied.pass(1);
    CHECK(tied.given_up() == (can_be_replaced ? "lost the coordinator and could not reconnect: connection refused"
                                              : kBound + ": connection refused"));
  }
}

TEST_CASE("a node that hears of the job's end before it was in a round looks for its coordinator as long as others") {
  TiedLink tied({.rejoin_ms = 30'000});
  tied.begin();
  tied.say(EndJob{});
  tied.link.belongs();
  tied.reachable = false;
  tied.broken();
  tied.pass(32'000);
  CHECK(tied.given_up().empty());
}

TEST_CASE("a node that nobody else can lead gives up when its lease ends, if it has looked for the coordinator") {
  TiedLink tied;
  tied.owner.needs_lease = true;
  join_round(tied);
  tied.reachable = false;
  tied.broken();
  tied.pass(2'000);
  CHECK(tied.given_up().empty());
  tied.pass(1'000);
  CHECK(tied.count<Link::LeaseOver>() == 1);
  CHECK(tied.given_up() == kBound + ": connection refused");
}

TEST_CASE("a node that was suspended, or whose coordinator fell silent, looks for it once its workers are gone") {
  enum class After { kSuspended, kDropped, kInAnAttempt, kSilence };
  for (const After after : {After::kSuspended, After::kDropped, After::kInAnAttempt, After::kSilence}) {
    for (const bool is_back : {true, false}) {
      CAPTURE(static_cast<int>(after));
      CAPTURE(is_back);
      TiedLink tied;
      tied.owner.needs_lease = true;
      join_round(tied);
      if (after != After::kInAnAttempt) tied.owner.may_connect = false;  // before its workers are gone
      if (after == After::kSilence) {
        tied.hears = false;
        tied.pass(3'000);
      } else {
        tied.reachable = tied.answers = after != After::kInAnAttempt;
        if (after == After::kInAnAttempt) tied.broken();  // and the next one is under way
        tied.now_ms += 10'000;
      }
      tied.reachable = is_back;
      tied.answers = after != After::kSilence;
      tied.owner.may_connect = false;
      tied.look();
      if (after == After::kDropped) tied.broken();
      CHECK(tied.count<Link::LeaseOver>() == 1);
      tied.pass(20'000);  // while they end
      CHECK(tied.given_up().empty());
      CHECK(tied.link.waiting()->advice.empty());  // nobody has told it to wait
      tied.hears = true;
      tied.owner = {};
      tied.look();
      tied.pass(3'000);
      CHECK(tied.link.attached() == is_back);
      CHECK(tied.given_up().starts_with(kBound) == !is_back);
    }
  }
}

TEST_CASE("a coordinator that nobody can replace is looked for as often as a lease is renewed") {
  TiedLink tied;
  join_round(tied);
  const std::size_t before = tied.connects_ms.size();
  tied.reachable = false;
  tied.broken();
  tied.pass(3'000);
  CHECK_FALSE(tied.given_up().empty());
  CHECK(tied.connects_ms.size() - before >= 4);
  for (std::size_t i = before + 1; i < tied.connects_ms.size(); ++i) {
    CHECK(tied.connects_ms[i] - tied.connects_ms[i - 1] <= 1'000);
  }
}

TEST_CASE("a node whose lease ends while the coordinator has told it to come again later goes on waiting") {
  TiedLink tied;
  tied.owner.needs_lease = true;
  join_round(tied);
  tied.broken();  // a short session, and another one
  tied.broken();
  tied.pass(2'000);
  tied.carry(tied.link.rejected("it is kept out", 5'000, tied.now_ms));
  const std::size_t before = tied.connects_ms.size();
  tied.pass(4'900);
  CHECK(tied.count<Link::LeaseOver>() == 1);
  CHECK(tied.given_up().empty());
  CHECK(tied.connects_ms.size() == before);
  tied.owner = {};
  tied.pass(200);
  CHECK(tied.link.attached());
}

TEST_CASE("a node may be in a round while it has a coordinator, and for good once it was in one") {
  TiedLink tied;
  CHECK_FALSE(tied.link.may_be_in_round());
  tied.begin();
  CHECK(tied.link.may_be_in_round());  // the order may be under way
  tied.reachable = false;
  tied.broken();
  CHECK_FALSE(tied.link.may_be_in_round());
  tied.reachable = true;
  tied.pass_until_attached();
  tied.link.belongs();
  tied.reachable = false;
  tied.broken();
  CHECK(tied.link.may_be_in_round());
}

TEST_CASE("who belongs to a job says so in its next introduction, with the highest term that it has met") {
  TiedLink tied;
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
  TiedLink tied;
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
  TiedLink tied({.secret = "s"}, "t");
  tied.begin();
  CHECK(tied.given_up().find("secret") != std::string::npos);
  CHECK(tied.connects_ms.size() == 1);
  TiedLink later({.secret = "s"}, "s");
  later.begin();
  later.other.secret = "t";
  later.broken();
  CHECK(later.given_up().empty());
  later.other.secret = "s";
  later.pass(1000);
  CHECK(later.link.attached());
}

TEST_CASE("a node that waits at a place that accepts its connection and sends nothing says so from the beginning") {
  TiedLink tied({.endpoint = "head:29400"});
  tied.other.welcomes = false;
  tied.begin();
  CHECK(tied.link.waiting()->what ==
        "waiting for the coordinator at head:29400 (it accepts the connection, but sends nothing)");
}

TEST_CASE("who is turned away comes again when it was told to, or never") {
  TiedLink tied;
  tied.begin();
  tied.carry(tied.link.rejected("no", 40'000, tied.now_ms));
  CHECK(tied.count<Link::Detached>() == 1);
  CHECK(tied.link.waiting()->since_ms == tied.now_ms);
  CHECK(tied.link.waiting()->advice == "this node waits to be let in: no");
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
  TiedLink tied({.rejoin_ms = 1000});
  tied.begin();
  tied.link.belongs();
  tied.carry(tied.link.rejected("no", 300'000, tied.now_ms));
  tied.pass(300'000);
  CHECK(tied.given_up().empty());
  CHECK(tied.link.attached());
}

TEST_CASE("a node that is asked whether it lives answers at once, and its owner hears nothing of it") {
  TiedLink tied;
  tied.begin();
  const int before = tied.other.keep_alives;
  tied.say(AreYouThere{});
  CHECK(tied.other.keep_alives == before + 1);
  CHECK(tied.count<Link::Deliver>() == 0);
}

TEST_CASE("what is said where no session is open is lost, and after the link was closed nothing is done") {
  TiedLink tied;
  tied.reachable = false;
  tied.begin();
  CHECK(tied.link.send(WorkersSucceeded{0}).empty());
  tied.reachable = true;
  tied.pass(1000);
  REQUIRE(tied.link.attached());
  tied.link.close();
  CHECK(tied.link.on_time(tied.owner, tied.now_ms + 100'000).empty());
  CHECK(tied.link.broken("reset", false, tied.owner, tied.now_ms).empty());
  CHECK(!tied.link.next_deadline_ms(tied.owner));
}

TEST_CASE("a link whose session, connection or times are not of its state is noticed") {
  const auto noticed = [](void (*broken)(Link&), LinkSettings settings = {}) {
    TiedLink tied(std::move(settings));
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
}

TEST_CASE("a link does not connect while it has a connection") {
  TiedLink tied;
  tied.reachable = false;
  tied.begin();
  REQUIRE(!tied.link.attached());
  LinkBreaker::keep_connection(tied.link);
  CHECK(failed_check([&] { tied.pass(10'000); }) == "!has_connection_");
}
