#include "rendezvous/coordinator/rank_claims.h"

#include <doctest/doctest.h>

#include <string>

#include "rendezvous/coordinator/limits.h"

using namespace elastic;
using coordinator::RankClaims;
using membership::MemberState;
using membership::Node;
using membership::Roster;
using protocol::AgentId;
using protocol::NodeId;
using protocol::Rejected;

namespace {

// Agents have the numbers of their sessions.
Node& add(Roster& roster, AgentId agent, int rank) {
  Node node;
  node.agent = agent;
  node.session = static_cast<NodeId>(agent);
  node.address = "node" + std::to_string(agent);
  node.claimed_rank = rank;
  return roster.add(std::move(node), MemberState::kReady);
}

protocol::NodeJoins claim_of(AgentId agent, int rank) {
  return {.agent = agent, .address = "node" + std::to_string(agent), .node_rank = rank};
}

std::optional<RankClaims::Settled> first(RankClaims& claims, const Roster& roster, std::int64_t now_ms) {
  std::size_t position = 0;
  return claims.settle(position, roster, now_ms);
}

}  // namespace

TEST_CASE("a rank that no connected node has is free, and so is that of the same agent") {
  Roster roster;
  RankClaims claims;
  CHECK(claims.claim(9, claim_of(9, 1), roster, 0).asked == nullptr);
  Node& holder = add(roster, 1, 1);
  CHECK(claims.claim(9, claim_of(1, 1), roster, 0).asked == nullptr);
  CHECK(claims.claim(9, claim_of(9, 2), roster, 0).asked == nullptr);
  CHECK(claims.claim(9, {.agent = 9}, roster, 0).asked == nullptr);
  roster.set_session(holder, {});
  CHECK(claims.claim(9, claim_of(9, 1), roster, 0).asked == nullptr);
  CHECK(claims.empty());
}

TEST_CASE("a holder that is heard after it was asked keeps its rank, and the newcomer is refused") {
  Roster roster;
  Node& holder = add(roster, 1, 1);
  holder.is_heard(0);
  RankClaims claims;
  REQUIRE(claims.claim(9, claim_of(9, 1), roster, 0).asked == &holder);
  CHECK(claims.deadline_ms() == 1000);
  CHECK(!first(claims, roster, 999));
  holder.is_heard(999);
  const auto settled = first(claims, roster, 999);
  REQUIRE(settled);
  CHECK(settled->session == 9);
  CHECK(!settled->holder_is_silent);
  REQUIRE(settled->refusal);
  CHECK(settled->refusal->why == Rejected::Why::kRankTaken);
  CHECK(!settled->refusal->retry_ms);
  CHECK(settled->refusal->reason ==
        "node9 asks for rank 1, but node1 has it and is alive; give each node a rank of its own; 0 is free");
  CHECK(claims.empty());
}

TEST_CASE("a holder that is silent for a second is to be given up, and the newcomer may come in") {
  Roster roster;
  add(roster, 1, 1);
  RankClaims claims;
  claims.claim(9, claim_of(9, 1), roster, 0);
  const auto settled = first(claims, roster, 1000);
  REQUIRE(settled);
  CHECK(!settled->refusal);
  CHECK(settled->holder_is_silent);
  CHECK(settled->holder == 1);
  CHECK(settled->message == claim_of(9, 1));
}

TEST_CASE("a newcomer waits no longer once the holder has lost its session or has been forgotten") {
  for (const bool is_forgotten : {false, true}) {
    Roster roster;
    Node& holder = add(roster, 1, 1);
    RankClaims claims;
    claims.claim(9, claim_of(9, 1), roster, 0);
    roster.set_session(holder, {});
    if (is_forgotten) roster.erase(1);
    const auto settled = first(claims, roster, 1);
    REQUIRE(settled);
    CHECK(!settled->refusal);
    CHECK(!settled->holder_is_silent);
  }
}

TEST_CASE("newcomers are settled in the order in which they came, each by the state that its predecessor left") {
  Roster roster;
  add(roster, 1, 1);
  Node& other = add(roster, 2, 2);
  RankClaims claims;
  claims.claim(8, claim_of(8, 1), roster, 0);
  claims.claim(9, claim_of(9, 2), roster, 500);
  std::size_t position = 0;
  CHECK(claims.settle(position, roster, 1000)->session == 8);
  other.is_heard(1000);
  const auto settled = claims.settle(position, roster, 1000);
  REQUIRE(settled);
  CHECK(settled->session == 9);
  CHECK(settled->refusal);
  CHECK(!claims.settle(position, roster, 1000));
}

TEST_CASE("no more newcomers wait than the limit allows; the next is told to try again") {
  Roster roster;
  add(roster, 1, 1);
  RankClaims claims;
  for (std::size_t i = 0; i < limits::kHeldNodes; ++i) {
    const AgentId agent = 10 + i;
    CHECK(claims.claim(static_cast<NodeId>(agent), claim_of(agent, 1), roster, 0).asked != nullptr);
  }
  const auto answer = claims.claim(9, claim_of(9, 1), roster, 0);
  CHECK(answer.asked == nullptr);
  REQUIRE(answer.refusal);
  CHECK(answer.refusal->retry_ms == 1000);
}

TEST_CASE("a newcomer that leaves waits no longer, and when the job ends all who wait are named") {
  Roster roster;
  add(roster, 1, 1);
  RankClaims claims;
  claims.claim(7, claim_of(7, 1), roster, 0);
  claims.claim(8, claim_of(8, 1), roster, 100);
  CHECK(claims.withdraw(7));
  CHECK(!claims.withdraw(7));
  CHECK(claims.deadline_ms() == 1100);
  CHECK(claims.dismiss_all() == std::vector<NodeId>{8});
  CHECK(claims.empty());
  CHECK(!claims.deadline_ms());
}

TEST_CASE("ready nodes that claim a rank without having been in the last round are found") {
  Roster roster;
  add(roster, 1, 1);
  add(roster, 2, 2);
  add(roster, 3, 1).slot = 0;
  roster.move(add(roster, 4, 1), MemberState::kMember);
  CHECK(coordinator::newcomers_with_claim(roster, 1) == std::vector<AgentId>{1});
}
