#include "rendezvous/coordinator/loss_watch.h"

#include <doctest/doctest.h>

using namespace elastic;
using coordinator::LossWatch;
using membership::MemberState;
using membership::Node;
using membership::Roster;
using Nodes = std::vector<protocol::AgentId>;

namespace {

constexpr protocol::LeaseTimes kLease{.loss_timeout_ms = 5000};
constexpr std::int64_t kKillMs = protocol::LeaseTimes::kKillMs;

Node& heard_at(Roster& roster, protocol::AgentId agent, std::int64_t last_heard_ms) {
  Node node;
  node.agent = agent;
  node.session = static_cast<protocol::NodeId>(agent);
  node.last_heard_ms = last_heard_ms;
  return roster.add(std::move(node), MemberState::kMember);
}

}  // namespace

TEST_CASE("a node that has sent nothing for the loss timeout is silent, and the next look is due for the next node") {
  Roster roster;
  LossWatch watch(kLease);
  CHECK(!watch.next_ms());
  heard_at(roster, 1, 0);
  heard_at(roster, 2, 300);
  watch.watch(0);
  watch.watch(300);
  CHECK(watch.next_ms() == 5000);
  CHECK(watch.silent_agents(roster, 4999).empty());
  CHECK(watch.next_ms() == 5000);
  CHECK(watch.silent_agents(roster, 5000) == Nodes{1});
  CHECK(watch.next_ms() == 5300);
}

TEST_CASE("nodes that were heard meanwhile are not silent") {
  Roster roster;
  LossWatch watch(kLease);
  heard_at(roster, 1, 4800);
  watch.watch(0);
  CHECK(watch.silent_agents(roster, 5000).empty());
  CHECK(watch.next_ms() == 9800);
}

TEST_CASE("neither a node without a session nor the one that hosts the coordinator is silent") {
  Roster roster;
  LossWatch watch(kLease);
  roster.set_session(heard_at(roster, 1, 0), {});
  heard_at(roster, 2, 0).hosts_coordinator = true;
  watch.watch(0);
  CHECK(watch.silent_agents(roster, 5000).empty());
  CHECK(!watch.next_ms());
}

TEST_CASE("a look that comes late is put off for one renewal, since nodes may have sent something meanwhile") {
  Roster roster;
  LossWatch watch(kLease);
  heard_at(roster, 1, 0);
  watch.watch(0);
  CHECK(watch.silent_agents(roster, 6001).empty());
  CHECK(watch.next_ms() == 7001);
  CHECK(watch.silent_agents(roster, 7001) == Nodes{1});
}

TEST_CASE("a look that is late by less than a renewal is not put off") {
  Roster roster;
  LossWatch watch(kLease);
  heard_at(roster, 1, 0);
  watch.watch(0);
  CHECK(watch.silent_agents(roster, 6000) == Nodes{1});
}

TEST_CASE("a lost node's workers are gone a moment after the end of its lease was noticed") {
  LossWatch watch(kLease);
  CHECK(!watch.next_ms());
  watch.begin_lease(1, 3000);
  CHECK(watch.next_ms() == 3000);
  CHECK(watch.leases_over(2999).empty());
  CHECK(watch.next_ms() == 3000);
  CHECK(watch.leases_over(3000).empty());
  CHECK(watch.next_ms() == 3000 + kKillMs);
  CHECK(watch.leases_over(3000 + kKillMs - 1).empty());
  CHECK(watch.leases_over(3000 + kKillMs) == Nodes{1});
}

TEST_CASE("an end that is noticed late gives the guardian its whole moment") {
  LossWatch watch(kLease);
  watch.begin_lease(1, 3000);
  CHECK(watch.leases_over(60'000).empty());
  CHECK(watch.next_ms() == 60'000 + kKillMs);
  CHECK(watch.leases_over(60'000 + kKillMs) == Nodes{1});
}

TEST_CASE("leases end in the order of their times, and stay until their nodes are forgotten") {
  LossWatch watch(kLease);
  watch.begin_lease(1, 5000);
  watch.begin_lease(2, 3000);
  watch.begin_lease(3, 4000);
  CHECK(watch.lost_nodes() == Nodes{2, 3, 1});
  CHECK(watch.last_lease_ms() == 5000);
  watch.leases_over(4000);
  CHECK(watch.lost_nodes() == Nodes{2, 3, 1});
  CHECK(watch.leases_over(4000 + kKillMs) == Nodes{2, 3});
  CHECK(watch.leases_over(4000 + kKillMs) == Nodes{2, 3});
  watch.forget(2);
  watch.forget(3);
  CHECK(watch.leases_over(4000 + kKillMs).empty());
  CHECK(watch.next_ms() == 5000);
}

TEST_CASE("a node that is back has no lease of a lost node, and may be lost again") {
  LossWatch watch(kLease);
  watch.begin_lease(1, 3000);
  watch.leases_over(3000);
  watch.forget(1);
  watch.forget(1);
  CHECK(!watch.next_ms());
  CHECK(!watch.last_lease_ms());
  watch.begin_lease(1, 9000);
  CHECK(watch.leases_over(8999).empty());
  CHECK(watch.next_ms() == 9000);
}

TEST_CASE("a look at silent nodes and the end of a lease are due at the earlier of their times") {
  LossWatch watch(kLease);
  watch.watch(1000);
  watch.begin_lease(1, 7000);
  CHECK(watch.next_ms() == 6000);
  watch.begin_lease(2, 5500);
  CHECK(watch.next_ms() == 5500);
}
