#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/protocol/session.h"

// The two ends of a session, connected to each other, for tests.
namespace elastic::protocol::test {

inline Nonce nonce_of(std::uint8_t first) {
  Nonce nonce{};
  for (std::size_t i = 0; i < nonce.size(); ++i) nonce[i] = static_cast<std::uint8_t>(first + i);
  return nonce;
}
inline const Nonce kAgentNonce = nonce_of(0x10);
inline const Nonce kCoordinatorNonce = nonce_of(0x80);
inline const Introduction kIntroduction = {"job-1", 0x0123456789ABCDEF, 0, 0};
inline const Welcome kWelcome = {3, 0xFEDCBA9876543210, 5000};
inline const NodeJoins kJoins = {.local_world_size = 8, .role = "default", .agent = kIntroduction.agent};

inline PrepareRound prepare(RoundNumber round) {
  PrepareRound message;
  message.round = round;
  message.reason = "a node was lost";
  return message;
}

// Events in words, one line each.
inline std::string told(const SessionError& error) {
  const char* const kinds[] = {"version",  "secret",       "not ours",   "malformed",
                               "too long", "out of order", "older term", "refused"};
  return std::string(kinds[static_cast<int>(error.kind)]) + ": " + error.text;
}
inline std::string told(const AgentSession::Event& event) {
  if (std::holds_alternative<AgentSession::Welcomed>(event)) return "welcomed";
  if (const auto* grant_lease = std::get_if<AgentSession::LeaseGrant>(&event))
    return "kept " + std::to_string(grant_lease->sent_ms);
  if (const auto* got = std::get_if<AgentSession::Received>(&event)) return name_of(type_of(got->message));
  if (const auto* stale = std::get_if<AgentSession::Stale>(&event)) return "stale: " + stale->text;
  return told(std::get<SessionError>(event));
}
inline std::string told(const CoordinatorSession::Event& event) {
  if (std::holds_alternative<CoordinatorSession::Introduced>(event)) return "introduced";
  if (const auto* got = std::get_if<CoordinatorSession::Received>(&event)) return name_of(type_of(got->message));
  if (const auto* alive = std::get_if<CoordinatorSession::KeepAlive>(&event)) {
    return "keep-alive " + std::to_string(alive->number);
  }
  if (std::holds_alternative<CoordinatorSession::NodeIsEmpty>(event)) return "node is empty";
  if (const auto* stale = std::get_if<CoordinatorSession::Stale>(&event)) return "stale: " + stale->text;
  return told(std::get<SessionError>(event));
}
template <class Event>
std::vector<std::string> told(const std::vector<Event>& events) {
  std::vector<std::string> lines;
  for (const Event& event : events) lines.push_back(told(event));
  return lines;
}
using Lines = std::vector<std::string>;

// A frame of any type, without a stamp.
inline void append_raw(ByteString& out, std::uint8_t type, const ByteString& fields = {}) {
  const std::size_t length = 17 + fields.size();
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(length >> shift));
  out.push_back(type);
  out.insert(out.end(), 16, 0);
  out.insert(out.end(), fields.begin(), fields.end());
}

// Both ends of a session, and the bytes that are under way.
struct Talk {
  explicit Talk(const std::string& agent_secret = "secret", const std::string& coordinator_secret = "secret",
                const Introduction& introduction = kIntroduction, const Version& agent_version = kOurVersion,
                const Version& coordinator_version = kOurVersion)
      : agent(introduction, agent_secret, kAgentNonce, agent_version),
        coordinator(coordinator_secret, kCoordinatorNonce, coordinator_version) {
    to_coordinator = agent.begin();
  }
  Lines at_coordinator() {
    const ByteString bytes = std::exchange(to_coordinator, {});
    return told(coordinator.receive(bytes, to_agent));
  }
  Lines at_agent() {
    const ByteString bytes = std::exchange(to_agent, {});
    return told(agent.receive(bytes, to_coordinator));
  }
  void say(const AgentMessage& message) { agent.send(message, to_coordinator); }
  void tell(const CoordinatorMessage& message) { coordinator.send(message, to_agent); }
  // Runs the session up to and including the PROOF.
  Talk& introduce() {
    at_coordinator();
    at_agent();
    REQUIRE(at_coordinator().at(0) == "introduced");
    return *this;
  }
  // Runs the session up to a WELCOME and a NodeJoins.
  Talk& welcome(const Welcome& welcome = kWelcome) {
    introduce();
    coordinator.welcome(welcome, to_agent);
    REQUIRE(at_agent() == Lines{"welcomed"});
    say(kJoins);
    REQUIRE(at_coordinator() == Lines{"NodeJoins"});
    return *this;
  }
  // Sends a frame to the agent that the coordinator's end would not write.
  Lines forged_at_agent(const Stamp& stamp, const CoordinatorMessage& message) {
    append_frame(to_agent, stamp, message);
    return at_agent();
  }
  Lines forged_at_coordinator(const Stamp& stamp, const AgentMessage& message) {
    append_frame(to_coordinator, stamp, message);
    return at_coordinator();
  }
  // Sends a frame of any type, without a stamp, from the other end.
  Lines raw_at_agent(std::uint8_t type, const ByteString& fields = {}) {
    append_raw(to_agent, type, fields);
    return at_agent();
  }
  Lines raw_at_coordinator(std::uint8_t type, const ByteString& fields = {}) {
    append_raw(to_coordinator, type, fields);
    return at_coordinator();
  }

  AgentSession agent;
  CoordinatorSession coordinator;
  ByteString to_coordinator;
  ByteString to_agent;
};

}  // namespace elastic::protocol::test
