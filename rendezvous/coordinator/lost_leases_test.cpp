#include "rendezvous/coordinator/lost_leases.h"

#include <doctest/doctest.h>

#include "rendezvous/protocol/lease.h"

using namespace elastic;
using coordinator::LostLeases;
using Nodes = std::vector<protocol::AgentId>;

namespace {

constexpr std::int64_t kKillMs = protocol::LeaseTimes::kKillMs;

}  // namespace

TEST_CASE("a lost node's workers are gone a moment after the end of its lease was noticed") {
  LostLeases leases;
  CHECK(!leases.next_ms());
  leases.begin(1, 3000);
  CHECK(leases.next_ms() == 3000);
  CHECK(leases.over(2999).empty());
  CHECK(leases.next_ms() == 3000);
  CHECK(leases.over(3000).empty());
  CHECK(leases.next_ms() == 3000 + kKillMs);
  CHECK(leases.over(3000 + kKillMs - 1).empty());
  CHECK(leases.over(3000 + kKillMs) == Nodes{1});
}

TEST_CASE("an end that is noticed late gives the guardian its whole moment") {
  LostLeases leases;
  leases.begin(1, 3000);
  CHECK(leases.over(60'000).empty());
  CHECK(leases.next_ms() == 60'000 + kKillMs);
  CHECK(leases.over(60'000 + kKillMs) == Nodes{1});
}

TEST_CASE("leases end in the order of their times, and stay until their nodes are forgotten") {
  LostLeases leases;
  leases.begin(1, 5000);
  leases.begin(2, 3000);
  leases.begin(3, 4000);
  CHECK(leases.nodes() == Nodes{2, 3, 1});
  CHECK(leases.last_ms() == 5000);
  leases.over(4000);
  CHECK(leases.nodes() == Nodes{2, 3, 1});
  CHECK(leases.over(4000 + kKillMs) == Nodes{2, 3});
  CHECK(leases.over(4000 + kKillMs) == Nodes{2, 3});
  leases.forget(2);
  leases.forget(3);
  CHECK(leases.over(4000 + kKillMs).empty());
  CHECK(leases.next_ms() == 5000);
}

TEST_CASE("a node that is back has no lease of a lost node, and may be lost again") {
  LostLeases leases;
  leases.begin(1, 3000);
  leases.over(3000);
  leases.forget(1);
  leases.forget(1);
  CHECK(!leases.next_ms());
  CHECK(!leases.last_ms());
  leases.begin(1, 9000);
  CHECK(leases.over(8999).empty());
  CHECK(leases.next_ms() == 9000);
}
