#include "rendezvous/coordinator/silence_watch.h"

#include <doctest/doctest.h>

using namespace elastic;
using coordinator::SilenceWatch;
using membership::MemberState;
using membership::Node;
using membership::Roster;
using Nodes = std::vector<protocol::AgentId>;

namespace {

constexpr protocol::LeaseTimes kLease{.loss_timeout_ms = 5000};

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
  SilenceWatch watch(kLease);
  CHECK(!watch.due_ms());
  heard_at(roster, 1, 0);
  heard_at(roster, 2, 300);
  watch.watch(0);
  watch.watch(300);
  CHECK(watch.due_ms() == 5000);
  CHECK(watch.silent_agents(roster, 4999).empty());
  CHECK(watch.due_ms() == 5000);
  CHECK(watch.silent_agents(roster, 5000) == Nodes{1});
  CHECK(watch.due_ms() == 5300);
}

TEST_CASE("nodes that were heard meanwhile are not silent") {
  Roster roster;
  SilenceWatch watch(kLease);
  heard_at(roster, 1, 4800);
  watch.watch(0);
  CHECK(watch.silent_agents(roster, 5000).empty());
  CHECK(watch.due_ms() == 9800);
}

TEST_CASE("neither a node without a session nor the one that hosts the coordinator is silent") {
  Roster roster;
  SilenceWatch watch(kLease);
  roster.set_session(heard_at(roster, 1, 0), {});
  heard_at(roster, 2, 0).hosts_coordinator = true;
  watch.watch(0);
  CHECK(watch.silent_agents(roster, 5000).empty());
  CHECK(!watch.due_ms());
}

TEST_CASE("a look that comes late is put off for one renewal, since nodes may have sent something meanwhile") {
  Roster roster;
  SilenceWatch watch(kLease);
  heard_at(roster, 1, 0);
  watch.watch(0);
  CHECK(watch.silent_agents(roster, 6001).empty());
  CHECK(watch.due_ms() == 7001);
  CHECK(watch.silent_agents(roster, 7001) == Nodes{1});
}

TEST_CASE("a look that is late by less than a renewal is not put off") {
  Roster roster;
  SilenceWatch watch(kLease);
  heard_at(roster, 1, 0);
  watch.watch(0);
  CHECK(watch.silent_agents(roster, 6000) == Nodes{1});
}
