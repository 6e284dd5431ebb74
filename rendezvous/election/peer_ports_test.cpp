#include "rendezvous/election/peer_ports.h"

#include <doctest/doctest.h>

#include "rendezvous/election/limits.h"

namespace elastic::election {
namespace {

TEST_CASE("a round waits until each peer port that was tried has answered, or a second is over") {
  PeerPorts peer_ports;
  CHECK_FALSE(peer_ports.awaited_until_ms(0));
  CHECK(peer_ports.is_to_try(1, 0));
  CHECK(peer_ports.is_to_try(2, 300));
  CHECK_FALSE(peer_ports.is_to_try(2, 400));  // it is being tried
  CHECK(peer_ports.awaited_until_ms(400) == 1300);
  peer_ports.is_open(2);
  CHECK(peer_ports.awaited_until_ms(400) == 1000);
  CHECK(peer_ports.may_be_open(1));
  CHECK_FALSE(peer_ports.awaited_until_ms(1000));
  CHECK_FALSE(peer_ports.may_be_open(1));
  CHECK(peer_ports.may_be_open(2));
  CHECK(peer_ports.may_be_open(3));  // nobody has tried it
  CHECK_FALSE(peer_ports.is_known_open(3));
  CHECK(peer_ports.is_known_open(2));
}

TEST_CASE("a peer port that answers late is open after all") {
  PeerPorts peer_ports;
  CHECK(peer_ports.is_to_try(1, 0));
  CHECK_FALSE(peer_ports.awaited_until_ms(1000));
  CHECK_FALSE(peer_ports.may_be_open(1));
  peer_ports.is_open(1);
  CHECK(peer_ports.may_be_open(1));
  peer_ports.is_shut(1);  // an answer that nobody awaits any more
  CHECK(peer_ports.may_be_open(1));
}

TEST_CASE("no more peer ports are tried than are wanted, and others take the places of those that are shut") {
  PeerPorts peer_ports;
  protocol::AgentId agent = 0;
  while (peer_ports.is_to_try(++agent, 0)) {
  }
  CHECK(agent == limits::kPeerPortsWanted + 1);
  peer_ports.is_shut(1);
  CHECK(peer_ports.is_to_try(agent, 0));
  CHECK_FALSE(peer_ports.is_to_try(agent + 1, 0));
  peer_ports.forget(2);
  CHECK(peer_ports.is_to_try(agent + 1, 0));
}

TEST_CASE("where all peer ports are shut a coordinator gives up trying") {
  PeerPorts peer_ports;
  protocol::AgentId agent = 0;
  while (peer_ports.is_to_try(++agent, 0)) peer_ports.is_shut(agent);
  CHECK(agent == limits::kPeerPortsTried + 1);
}

}  // namespace
}  // namespace elastic::election
