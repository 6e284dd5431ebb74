#include "rendezvous/membership/roster.h"

#include <doctest/doctest.h>

#include <string>

#include "src/base/check_test_support.h"
#include "src/base/test_random.h"

namespace elastic::membership {

// Breaks the invariants of a roster.
struct RosterBreaker {
  static void count_one_more(Roster& roster) { ++roster.counts_[0]; }
  static void forget_session(Roster& roster, protocol::NodeId session) { roster.sessions_.erase(session); }
  static void keep_session(Roster& roster, protocol::NodeId session) { roster.sessions_[session] = 5; }
};

}  // namespace elastic::membership

using elastic::failed_check;
using namespace elastic::membership;

namespace {

Node node(std::uint64_t agent, std::optional<std::uint32_t> session = {}) {
  Node made;
  made.agent = agent;
  made.session = session;
  made.address = "host" + std::to_string(agent);
  return made;
}

}  // namespace

TEST_CASE("a roster finds nodes by agent and by session, and nothing where there is none") {
  Roster roster;
  Node& added = roster.add(node(5, 50), MemberState::kReady);
  CHECK(roster.find(5) == &added);
  CHECK(roster.of_session(50) == &added);
  CHECK(roster.find(50) == nullptr);
  CHECK(roster.of_session(5) == nullptr);
  roster.erase(5);
  CHECK(roster.find(5) == nullptr);
  CHECK(roster.of_session(50) == nullptr);
  CHECK(roster.size() == 0);
}

TEST_CASE("a node's session may end and another begin, and the old one means nothing then") {
  Roster roster;
  Node& added = roster.add(node(5, 50), MemberState::kMember);
  roster.set_session(added, {});
  CHECK(roster.of_session(50) == nullptr);
  CHECK(roster.find(5) == &added);
  roster.set_session(added, 51);
  roster.set_session(added, 52);
  CHECK(roster.of_session(51) == nullptr);
  CHECK(roster.of_session(52) == &added);
}

TEST_CASE("the counts of the member states are those of the nodes, whatever happens") {
  Roster roster;
  elastic::TestRandom random(3);
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t agent = random() % 40;
    const auto member_state = static_cast<MemberState>(random() % kMemberStates);
    Node* known = roster.find(agent);
    if (known == nullptr) {
      roster.add(node(agent, static_cast<std::uint32_t>(step)), member_state);
    } else if (random() % 4 == 0) {
      roster.erase(agent);
    } else {
      roster.move(*known, member_state);
      CHECK(known->member_state() == member_state);
    }
    std::array<std::size_t, kMemberStates> counts{};
    for (const auto& [number, each] : roster.nodes()) ++counts[static_cast<std::size_t>(each.member_state())];
    for (std::size_t i = 0; i < kMemberStates; ++i) REQUIRE(roster.count(static_cast<MemberState>(i)) == counts[i]);
    roster.check_invariants();
  }
}

TEST_CASE("a node that is not in the roster is not handed out") {
  Roster roster;
  Node& added = roster.add(node(5, 50), MemberState::kReady);
  CHECK(&roster.at(5) == &added);
  CHECK(failed_check([&] { roster.at(6); }) == "found != nodes_.end()");
}

TEST_CASE("a roster whose counts or sessions are not those of its nodes is noticed") {
  const auto broken = [](auto&& how) {
    Roster roster;
    Node& first = roster.add(node(5, 50), MemberState::kReady);
    roster.add(node(6, 60), MemberState::kMember);
    roster.check_invariants();
    how(roster, first);
    return failed_check([&] { roster.check_invariants(); });
  };
  const std::string of_session = "session != sessions_.end() && session->second == agent";
  CHECK(broken([](Roster&, Node& first) { first.agent = 7; }) == "node.agent == agent");
  CHECK(broken([](Roster&, Node& first) { first.session = 60; }) == of_session);
  CHECK(broken([](Roster& roster, Node&) { RosterBreaker::count_one_more(roster); }) == "counts_ == counts");
  CHECK(broken([](Roster& roster, Node&) { RosterBreaker::forget_session(roster, 60); }) == of_session);
  CHECK(broken([](Roster& roster, Node&) { RosterBreaker::keep_session(roster, 70); }) ==
        "sessions_.size() == connected");
}

TEST_CASE("pointers to nodes stay good while others come and go") {
  Roster roster;
  Node& first = roster.add(node(500), MemberState::kReady);
  for (std::uint64_t agent = 0; agent < 500; ++agent) roster.add(node(agent), MemberState::kMember);
  for (std::uint64_t agent = 0; agent < 500; ++agent) roster.erase(agent);
  CHECK(roster.find(500) == &first);
  CHECK(first.address == "host500");
}

TEST_CASE("a node is named by its rank once it has a rank slot, and is counted under its host, whatever it claims") {
  Node one = node(1);
  CHECK(one.name() == "host1");
  CHECK(one.identity() == "host1");
  one.place.node_rank = 3;
  CHECK(one.name() == "host1");
  one.slot = 4;
  CHECK(one.name() == "node 3 (host1)");
  one.claimed_rank = 7;
  CHECK(one.identity() == "host1");
  one.address.clear();
  CHECK(one.identity() == "agent 1");
  CHECK(one.name() == "node 3");
  CHECK(Node{}.name() == "a node");
}

TEST_CASE("signs of life are counted") {
  Node one = node(1);
  one.is_heard(70);
  one.is_heard(80);
  CHECK(one.last_heard_ms == 80);
  CHECK(one.heard == 2);
}
