#include "rendezvous/election/search.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <optional>

using namespace elastic;
using namespace elastic::election;
using namespace elastic::protocol;

namespace {

constexpr std::int64_t kStep = 250;
constexpr std::int64_t kStepAfterSplitVote = 500;
constexpr std::optional<std::int64_t> kFree = 0;
constexpr std::optional<std::int64_t> kBound;

// The coordinator was in the process of agent 1; agents 2 and 3 are the next leaders.
struct Lost {
  Lost() {
    search.meets(1);
    search.knows({peer_port(2), peer_port(3), peer_port(1)});
    search.begin({}, 0);
  }
  static NextLeader peer_port(AgentId agent) {
    return {agent, static_cast<int>(agent) - 1, "10.0.0." + std::to_string(agent), static_cast<std::uint16_t>(agent)};
  }
  // The agent that is asked next; 0: discovery.
  AgentId asks(bool is_free) {
    const auto target = search.next(is_free ? kFree : kBound, now_ms);
    return target ? target->agent : 0;
  }

  // The same, after the probes.
  AgentId asks_first(bool is_free) {
    AgentId asked = asks(is_free);
    while (search.probes()) asked = asks(is_free);
    return asked;
  }

  Search search;
  std::int64_t now_ms = 0;
};

}  // namespace

TEST_CASE(
    "an agent that has not lost a coordinator, or knows of no next leader, looks by discovery, at its ordinary pace") {
  Search search;
  CHECK_FALSE(search.next(kFree, 0));
  CHECK_FALSE(search.again_at_ms(true, 0));
  search.begin({}, 0);
  CHECK_FALSE(search.is_on());
  CHECK_FALSE(search.next(kFree, 0));
  CHECK_FALSE(search.patience_ms(0));
}

TEST_CASE("another process that answers at the lost coordinator's own port shows that it is gone, and only there") {
  Lost lost;
  CHECK(lost.asks(false) == 1);
  CHECK_FALSE(lost.search.is_replaced_by(1));
  CHECK(lost.search.is_replaced_by(7));
  CHECK(lost.asks(false) == 0);  // by discovery another host may be found by now
  CHECK_FALSE(lost.search.is_replaced_by(7));
}

TEST_CASE("after a next leader that was not elected the others and discovery are asked before it is asked again") {
  Lost lost;
  CHECK(lost.asks(true) == 2);
  lost.search.begin({}, 5'000);  // it was not elected
  lost.now_ms = 5'000;
  CHECK(lost.asks_first(true) == 3);
  CHECK(lost.asks_first(true) == 1);
  CHECK(lost.asks_first(true) == 0);
  CHECK(lost.asks_first(true) == 2);
  lost.search.end();
  lost.search.begin({}, 9'000);  // a coordinator that acted is lost
  CHECK(lost.asks(true) == 2);
}

TEST_CASE("after a split vote an agent gives each that it asks longer to answer, the longer the more often") {
  Lost lost;
  CHECK(lost.search.patience_ms(0) == kStep);
  for (const std::int64_t patience_ms : {500, 1'000, 1'000}) {
    CHECK(lost.asks_first(true) != 0);
    lost.search.begin({}, 5'000);
    lost.now_ms = 5'000;
    CHECK(lost.search.patience_ms(lost.now_ms) == patience_ms);
  }
  lost.search.end();
  lost.search.begin({}, 9'000);  // a coordinator that acted is lost
  CHECK(lost.search.patience_ms(9'000) == kStep);
}

TEST_CASE("after a split vote an agent does not join the new start of a node again before the others had their turn") {
  Lost lost;
  CHECK(lost.asks(true) == 2);
  lost.search.meets(9);
  CHECK_FALSE(lost.search.shuns(9));
  lost.search.begin({}, 0);
  for (const AgentId next : {3u, 1u, 0u, 2u}) {
    CHECK(lost.search.shuns(9));
    CHECK(lost.asks_first(true) == next);
  }
  CHECK(lost.search.shuns(9));
  CHECK(lost.asks_first(true) == 3);
  CHECK_FALSE(lost.search.shuns(9));
  SUBCASE("what is known of one new start says nothing about the next one") {
    lost.search.meets(8);
    lost.search.begin({}, 0);
    CHECK(lost.search.shuns(8));
    CHECK_FALSE(lost.search.shuns(9));
  }
  SUBCASE("a next leader that was not elected has its turn as ever") {
    lost.search.meets(3);
    lost.search.begin({}, 0);
    for (const AgentId host : {3u, 9u, 0u}) CHECK_FALSE(lost.search.shuns(host));
  }
  SUBCASE("one that has acted, and is lost, may be met at once") {
    lost.search.meets(9);
    lost.search.end();
    lost.search.begin({}, 0);
    CHECK_FALSE(lost.search.shuns(9));
  }
}

TEST_CASE("after a split vote an agent probes for a candidate before each peer port that it would open") {
  Lost lost;
  CHECK(lost.asks(true) == 2);
  CHECK_FALSE(lost.search.probes());
  lost.search.meets(2);
  lost.search.begin({}, 1'000);
  lost.now_ms = 1'000;
  for (const AgentId next : {3u, 1u}) {
    // The one that was not elected, too, since others may have made it a candidate again; and discovery, since a new
    // start of a node may be one.
    for (const AgentId looked_at : {2u, 3u, 1u, 0u}) {
      CHECK(lost.asks(true) == looked_at);
      CHECK(lost.search.probes());
      CHECK(lost.search.patience_ms(60'000) == kStepAfterSplitVote);
      lost.search.sent({.retry_ms = 700});  // no candidate is there, which is all that the agent wants to know
      CHECK(lost.search.again_at_ms(false, lost.now_ms) == lost.now_ms);
    }
    CHECK(lost.asks(true) == next);
    CHECK_FALSE(lost.search.probes());
  }
  SUBCASE("a redirect to a candidate elsewhere is followed, and that one is only probed, too") {
    CHECK(lost.asks(true) == 2);
    lost.search.sent({"10.0.0.9", 9, {}});
    CHECK(lost.search.next(kFree, lost.now_ms)->port == 9);
    CHECK(lost.search.probes());
  }
  // Probes all of these, of which `silent` does not answer.
  const auto looks_at = [&](std::initializer_list<AgentId> places, std::optional<AgentId> silent = {}) {
    for (const AgentId looked_at : places) {
      CHECK(lost.asks(true) == looked_at);
      CHECK(lost.search.probes());
      lost.now_ms += looked_at == silent ? kStepAfterSplitVote : 10;
    }
  };
  const auto opens_a_peer_server = [&] {
    lost.asks(true);
    CHECK_FALSE(lost.search.probes());
  };
  SUBCASE("after each that does not answer those that do are probed once more, since a candidate may have risen") {
    looks_at({2, 3}, 3);
    looks_at({2, 1, 0});
    opens_a_peer_server();
    // The next time the silent one is waited for last.
    looks_at({2, 1, 0, 3}, 3);
    looks_at({2, 1}, 1);
    looks_at({2, 0});
    opens_a_peer_server();
    looks_at({2, 0, 3, 1}, 1);
    looks_at({2, 3, 0});
    opens_a_peer_server();
    looks_at({2, 3, 0, 1});
    opens_a_peer_server();
  }
  SUBCASE("one that does not answer is waited for last also by the search after this one, if this one elects nobody") {
    looks_at({2, 3}, 3);
    looks_at({2});
    lost.search.begin({}, lost.now_ms);
    looks_at({2, 1, 0, 3});
    lost.search.end();
    lost.search.begin({}, lost.now_ms);  // a coordinator that acted is lost
    CHECK(lost.asks(true) == 2);
    CHECK_FALSE(lost.search.probes());
    CHECK(lost.asks(true) == 3);
  }
}

TEST_CASE("what a search has found of next leaders is forgotten when others come after the coordinator") {
  Lost lost;
  CHECK(lost.asks(true) == 2);
  lost.search.begin({}, 1'000);
  lost.now_ms = 1'000;
  for (const AgentId looked_at : {2u, 3u}) CHECK(lost.asks(true) == looked_at);
  lost.now_ms += kStepAfterSplitVote;
  CHECK(lost.asks(true) == 2);  // 3, at place 1, is silent
  lost.search.knows({Lost::peer_port(4)});
  lost.search.begin({}, lost.now_ms);
  for (const AgentId looked_at : {4u, 0u}) {
    CHECK(lost.asks(true) == looked_at);
    CHECK(lost.search.probes());
  }
}

TEST_CASE("a peer port that is not open for longer than any vote lasts is left") {
  Lost lost;
  CHECK(lost.asks(true) == 2);
  lost.search.sent({.retry_ms = 700});
  lost.now_ms = 4'999;
  CHECK(lost.asks(true) == 2);
  lost.search.sent({.retry_ms = 700});
  lost.now_ms = 5'000;
  CHECK(lost.asks(true) == 3);
}

TEST_CASE("a coordinator on none of the nodes has no node rank that could be left out of its round") {
  Search search;
  search.meets(9);
  search.knows({Lost::peer_port(2), {9, -1, "10.0.0.9", 29400}});
  search.begin({}, 0);
  CHECK(search.next(kBound, 0)->agent == 9);
  CHECK_FALSE(search.rank_of_the_lost());
}

TEST_CASE("an agent that is not free asks at the lost coordinator's own peer port and by discovery, in turn") {
  Lost lost;
  CHECK(lost.asks(false) == 1);
  CHECK(lost.search.has_asked_the_lost());
  CHECK(lost.search.rank_of_the_lost() == 0);
  CHECK(lost.search.patience_ms(0) == kStep);
  CHECK(lost.search.again_at_ms(false, 100) == kStep);
  CHECK(lost.asks(false) == 0);
  CHECK_FALSE(lost.search.has_asked_the_lost());
  CHECK(lost.asks(false) == 1);
  lost.now_ms = 10'000;
  CHECK_FALSE(lost.search.again_at_ms(false, lost.now_ms));
  CHECK_FALSE(lost.search.patience_ms(lost.now_ms));
}

TEST_CASE("an agent that becomes free waits no longer for those whom it has asked while it was bound") {
  Lost lost;
  CHECK(lost.search.next(100, 0)->agent == 1);
  CHECK(lost.search.patience_ms(0) == 100);
  CHECK(lost.search.again_at_ms(false, 60) == 100);
  CHECK(lost.search.again_at_ms(false, 100) == 100);
  lost.now_ms = 100;
  CHECK(lost.asks(true) == 2);
  CHECK(lost.search.patience_ms(lost.now_ms) == kStep);
  Lost bound_for_longer;
  CHECK(bound_for_longer.search.next(400, 0)->agent == 1);
  CHECK(bound_for_longer.search.patience_ms(0) == kStep);
  CHECK(bound_for_longer.search.again_at_ms(false, 60) == kStep);
}

TEST_CASE("when the lost one's peer port has refused, the next leaders are asked at once, the lost one last") {
  Lost lost;
  CHECK(lost.asks(false) == 1);
  CHECK(lost.search.again_at_ms(true, 1) == 1);
  CHECK(lost.asks(true) == 2);
  CHECK(lost.search.again_at_ms(true, 2) == 2);
  CHECK(lost.search.again_at_ms(false, 2) == kStep);
  CHECK(lost.asks(true) == 3);
  CHECK(lost.asks(true) == 1);
  CHECK_FALSE(lost.search.has_asked_the_lost());  // what it answers now proves nothing
  CHECK(lost.asks(true) == 0);
  CHECK(lost.asks(true) == 2);
}

TEST_CASE("a next leader that is not free yet is asked again when it may be, and no other one") {
  Lost lost;
  CHECK(lost.asks(true) == 2);
  // It may be free sooner than it says.
  for (const std::int64_t pause_ms : {10, 20, 40, 80, 160, 250, 250}) {
    lost.search.sent({.retry_ms = 700});
    CHECK(lost.search.again_at_ms(false, 10) == 10 + pause_ms);
    CHECK(lost.asks(true) == 2);
  }
  lost.search.sent({.retry_ms = 7});
  CHECK(lost.search.again_at_ms(false, 10) == 17);
  CHECK(lost.asks(true) == 2);
  CHECK(lost.search.again_at_ms(true, 800) == 800);
  CHECK(lost.asks(true) == 3);
}

TEST_CASE("a peer port that knows where the coordinator is redirects there at once, but not round and round") {
  Lost lost;
  CHECK(lost.asks(true) == 2);
  for (int hop = 0; hop < 3; ++hop) {
    lost.search.sent({"10.0.0.9", 9, {}});
    CHECK(lost.search.again_at_ms(false, 5) == 5);
    CHECK(lost.search.next(kFree, 5)->port == 9);
  }
  lost.search.sent({"10.0.0.9", 9, {}});
  CHECK(lost.search.again_at_ms(false, 5) > 5);
  CHECK(lost.asks(true) == 2);
}

TEST_CASE("a next leader that redirects to one who is gone is asked again, since it may notice that soon, for T/5") {
  Lost lost;
  CHECK(lost.asks(true) == 2);
  for (const std::int64_t pause_ms : {10, 20, 40, 80, 160, 250, 250}) {
    lost.search.sent({"10.0.0.1", 1, {}});
    CHECK(lost.search.next(kFree, lost.now_ms) == PeerTarget{"10.0.0.1", 1, 0});
    CHECK(lost.search.again_at_ms(true, lost.now_ms) == lost.now_ms + pause_ms);
    lost.now_ms += pause_ms;
    CHECK(lost.asks(true) == 2);
  }
  for (const std::int64_t at_ms : {999, 1'000}) {
    lost.search.sent({"10.0.0.1", 1, {}});
    CHECK(lost.search.next(kFree, at_ms) == PeerTarget{"10.0.0.1", 1, 0});
    lost.now_ms = at_ms;
    CHECK(lost.asks(true) == (at_ms < 1'000 ? 2 : 3));
  }
}

TEST_CASE("a node that has lost nothing is redirected, too") {
  Search search;
  CHECK_FALSE(search.next(kBound, 0));
  search.sent({"10.0.0.9", 9, {}});
  CHECK(search.again_at_ms(false, 5) == 5);
  CHECK(search.next(kBound, 5) == PeerTarget{"10.0.0.9", 9, 0});
}

TEST_CASE("a coordinator on none of the nodes has no peer port: its agents wait until they are free") {
  Search search;
  search.knows({Lost::peer_port(2), Lost::peer_port(3)});
  search.begin({}, 0);
  CHECK_FALSE(search.next(kBound, 0));
  CHECK_FALSE(search.rank_of_the_lost());
  CHECK(search.next(kFree, 4'000)->agent == 2);
}

TEST_CASE(
    "the peer ports that an earlier coordinator has told lead to the present one, too, if that was a next leader") {
  Lost lost;
  lost.search.meets(2);
  lost.search.begin({}, 0);
  CHECK(lost.asks(false) == 2);
  CHECK(lost.search.has_asked_the_lost());
  CHECK(lost.search.rank_of_the_lost() == 1);
}

TEST_CASE(
    "an agent that is done, and about to leave, makes no candidate anywhere, but probes until it is in a round again") {
  Lost lost;
  lost.search.is_done();
  for (int turn = 0; turn < 3; ++turn) {
    // The lost coordinator's process, too, which others may have made a candidate.
    for (const AgentId looked_at : {2u, 3u, 1u, 0u}) {
      CHECK(lost.asks(true) == looked_at);
      CHECK(lost.search.probes());
      CHECK(lost.search.again_at_ms(true, lost.now_ms) == lost.now_ms + (looked_at == 0 ? kStep : 0));
    }
  }
  Lost back;
  back.search.is_done();
  back.search.knows({Lost::peer_port(2), Lost::peer_port(3), Lost::peer_port(1)});
  CHECK(back.asks(true) == 2);
  CHECK_FALSE(back.search.probes());
}
