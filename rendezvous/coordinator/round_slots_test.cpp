#include "rendezvous/coordinator/round_slots.h"

#include <doctest/doctest.h>

#include <optional>

#include "rendezvous/protocol/limits.h"

using namespace elastic;
using coordinator::addresses_of;
using coordinator::choose_round;
using coordinator::membership_digest;
using coordinator::RoundMember;
using membership::MemberState;
using membership::Node;
using membership::Roster;
using protocol::AgentId;

namespace {

Node& add(Roster& roster, AgentId agent, std::optional<int> slot = {}, MemberState member_state = MemberState::kReady) {
  Node node;
  node.agent = agent;
  node.shape = {static_cast<int>(agent), "default"};
  node.address = "host" + std::to_string(agent);
  node.addresses = "10.0.0." + std::to_string(agent);
  node.slot = slot;
  node.arrival = agent;
  return roster.add(std::move(node), member_state);
}

std::vector<AgentId> agents_of(const std::vector<RoundMember>& members) {
  std::vector<AgentId> agents;
  for (const RoundMember& member : members) agents.push_back(member.agent);
  return agents;
}

}  // namespace

TEST_CASE("ready nodes form the round, and their ranks count their workers") {
  Roster roster;
  add(roster, 1);
  add(roster, 2);
  add(roster, 3, {}, MemberState::kStopping);
  const auto members = choose_round(roster, {}, 2);
  REQUIRE(agents_of(members) == std::vector<AgentId>{1, 2});
  CHECK(members[0].place == protocol::NodePlace{0, 2, 0, 3, 0, 3});
  CHECK(members[1].place == protocol::NodePlace{1, 2, 1, 3, 1, 3});
}

TEST_CASE("a node of the last round keeps its rank slot, and a newcomer takes that of a node which is gone") {
  Roster roster;
  add(roster, 5, 1);
  add(roster, 6);
  const auto members = choose_round(roster, {{4, 0, "host4"}, {5, 1, "host5"}}, 2);
  REQUIRE(agents_of(members) == std::vector<AgentId>{6, 5});
  CHECK(members[0].slot == 0);
  CHECK(members[1].slot == 1);
}

TEST_CASE("of more ready nodes than the round takes, those of the last round come first") {
  Roster roster;
  add(roster, 1);
  add(roster, 2, 0);
  CHECK(agents_of(choose_round(roster, {{2, 0, "host2"}}, 1)) == std::vector<AgentId>{2});
}

TEST_CASE("the store's node gets the addresses of all nodes, each once") {
  Roster roster;
  add(roster, 1);
  add(roster, 2).addresses = "10.0.0.2 10.0.0.1";
  const auto members = choose_round(roster, {}, 2);
  CHECK(addresses_of(members, roster) == "10.0.0.1 10.0.0.2");
}

TEST_CASE("no addresses are told if those of one node are not known, or if they are too many") {
  Roster roster;
  add(roster, 1);
  Node& other = add(roster, 2);
  const auto members = choose_round(roster, {}, 2);
  other.addresses = "";
  CHECK(addresses_of(members, roster).empty());
  other.addresses = std::string(limits::kAgentAdmittedBytes, '1');
  CHECK(addresses_of(members, roster).empty());
}

TEST_CASE("a round has succeeded when each of its nodes is here, has succeeded, and has stopped") {
  Roster roster;
  const coordinator::Slots slots = {{1, 0}, {2, 1}};
  add(roster, 1).succeeded = true;
  CHECK(!have_all_succeeded(slots, roster));
  Node& other = add(roster, 2, {}, MemberState::kStopping);
  other.succeeded = true;
  CHECK(!have_all_succeeded(slots, roster));
  roster.move(other, MemberState::kReady);
  CHECK(have_all_succeeded(slots, roster));
  other.succeeded = false;
  CHECK(!have_all_succeeded(slots, roster));
}

TEST_CASE("the digest of a round depends on the job, the round, and its members and their order") {
  const auto digest = membership_digest(5, 3, {1, 2});
  CHECK(digest == membership_digest(5, 3, {1, 2}));
  CHECK(digest != membership_digest(6, 3, {1, 2}));
  CHECK(digest != membership_digest(5, 4, {1, 2}));
  CHECK(digest != membership_digest(5, 3, {2, 1}));
  CHECK(digest != membership_digest(5, 3, {1}));
}
