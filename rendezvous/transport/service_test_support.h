#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/coordinator/coordinator_test_support.h"
#include "rendezvous/protocol/session.h"
#include "rendezvous/transport/service.h"

// A service whose agents are driven by a test.
namespace elastic::transport::testing {

// An agent's end of one connection, driven by the test.
struct Peer {
  explicit Peer(protocol::AgentSession with_session) : session(std::move(with_session)) {}
  protocol::AgentSession session;
  std::vector<protocol::CoordinatorMessage> heard;
  int kept = 0;
  std::optional<std::int64_t> good_for_ms;          // of the last answer
  int asked = 0;                                    // answers that asked for its vote
  bool acknowledges = false;                        // it votes at once
  std::optional<protocol::VoterState> voter_state;  // goes with the next vote
  bool welcome = false;
  bool closed = false;
  std::string error;
  std::optional<protocol::Redirect> redirect;  // of the refusal

  template <class Message>
  const Message* last() const {
    for (auto message = heard.rbegin(); message != heard.rend(); ++message) {
      if (const auto* found = std::get_if<Message>(&*message)) return found;
    }
    return nullptr;
  }
};

// A service with connections whose bytes arrive at once.
struct Served {
  explicit Served(ServiceSettings settings = {})
      : service(
            [&] {
              settings.random = [this] { return ++incarnations; };
              return settings;
            }(),
            0) {}

  void carry(ServiceEffects effects) {
    for (ServiceEffect& effect : effects) {
      if (const auto* write = std::get_if<Write>(&effect)) deliver(write->connection, write->bytes);
      if (const auto* log = std::get_if<Log>(&effect)) logs.push_back(log->text);
      if (const auto* to = std::get_if<GossipTo>(&effect)) gossiped_to.push_back(*to);
      if (const auto* tried = std::get_if<TryPeerPortOf>(&effect)) {
        carry(service.on_event(PeerPortAnswered{tried->job, {tried->peer_port.agent, tried->peer_port.addresses}},
                               now_ms));
      }
      if (const auto* close = std::get_if<Close>(&effect)) {
        closed.push_back(close->connection);
        if (peers.contains(close->connection)) peers.at(close->connection).closed = true;
      }
    }
  }
  void deliver(ConnectionId id, const protocol::ByteString& bytes) {
    if (!peers.contains(id)) return;
    Peer& peer = peers.at(id);
    REQUIRE(!peer.closed);
    protocol::ByteString reply;
    for (const protocol::AgentSession::Event& event : peer.session.receive(bytes, reply)) {
      if (std::holds_alternative<protocol::AgentSession::Welcomed>(event)) peer.welcome = true;
      if (const auto* granted = std::get_if<protocol::AgentSession::LeaseGrant>(&event)) {
        ++peer.kept;
        peer.good_for_ms = granted->good_for_ms;
        if (granted->asks) ++peer.asked;
        if (granted->asks && peer.acknowledges) {
          peer.session.acknowledge_lease(granted->number, std::exchange(peer.voter_state, {}), reply);
        }
      }
      if (const auto* got = std::get_if<protocol::AgentSession::Received>(&event)) peer.heard.push_back(got->message);
      if (const auto* error = std::get_if<protocol::SessionError>(&event)) {
        peer.error = error->text;
        peer.redirect = error->redirect;
      }
    }
    if (!reply.empty()) read(id, reply);
  }
  void read(ConnectionId id, const protocol::ByteString& bytes) {
    carry(service.on_event(ConnectionRead{id, bytes}, now_ms));
  }
  ConnectionId open() {
    carry(service.on_event(ConnectionOpened{++connections, {}, from, from}, now_ms));
    return connections;
  }
  // Opens a connection and introduces an agent, which does not join yet.
  ConnectionId greet(const protocol::Introduction& introduction, const std::string& secret = "") {
    const ConnectionId id = open();
    peers.emplace(id, Peer(protocol::AgentSession(introduction, secret, {})));
    read(id, peers.at(id).session.begin());
    return id;
  }
  void say(ConnectionId id, const protocol::AgentMessage& message) {
    protocol::ByteString bytes;
    peers.at(id).session.send(message, bytes);
    read(id, bytes);
  }
  void keep_alive(ConnectionId id) {
    protocol::ByteString bytes;
    peers.at(id).session.keep_alive(now_ms, bytes);
    read(id, bytes);
  }
  protocol::NodeJoins joiner(protocol::AgentId agent, protocol::JobTerms terms) const {
    return {.local_world_size = 1,
            .role = "default",
            .agent = agent,
            .address = "node" + std::to_string(agent),
            .terms = terms};
  }
  ConnectionId join(const std::string& job, protocol::AgentId agent, protocol::JobTerms terms) {
    const ConnectionId id = greet({job, agent});
    say(id, joiner(agent, terms));
    return id;
  }
  void gone(ConnectionId id) {
    peers.at(id).closed = true;
    carry(service.on_event(ConnectionClosed{id, "reset"}, now_ms));
  }
  void time(std::int64_t at_ms) {
    now_ms = at_ms;
    carry(service.on_event(ServiceTime{}, now_ms));
  }
  // Runs a job of one node from its beginning to its end.
  ConnectionId whole_job(const std::string& job) {
    const ConnectionId id = join(job, 1, coordinator::testing::job_terms(1, 1));
    say(id, protocol::StoreIsOpen{0, {"h", 1}});
    say(id, protocol::WorkersSucceeded{0});
    say(id, protocol::JobResultHeard{});
    return id;
  }
  Peer& at(ConnectionId id) { return peers.at(id); }

  protocol::Incarnation incarnations = 0;
  Service service;
  std::map<ConnectionId, Peer> peers;
  std::vector<ConnectionId> closed;
  ConnectionId connections = 0;
  std::string from;  // the address that new connections come from
  std::vector<GossipTo> gossiped_to;
  std::vector<std::string> logs;  // the lines that the service has logged
  std::int64_t now_ms = 0;
};

}  // namespace elastic::transport::testing
