#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/protocol/session.h"

// The coordinator's end of an agent's connections, spoken by hand, for tests.
namespace elastic::agent::testing {

struct Other {
  explicit Other(std::string with_secret = "") : secret(std::move(with_secret)) {}

  // A new connection.
  void accept() { session.emplace(secret, protocol::Nonce{}); }
  // Takes what the agent has written, and returns the bytes for the agent.
  protocol::ByteString take(const protocol::ByteString& bytes) {
    protocol::ByteString out;
    for (const auto& event : session->receive(bytes, out)) {
      if (const auto* introduced = std::get_if<protocol::CoordinatorSession::Introduced>(&event)) {
        introductions.push_back(introduced->introduction);
        if (welcomes) session->welcome(welcome, out);
      }
      if (const auto* got = std::get_if<protocol::CoordinatorSession::Received>(&event)) heard.push_back(got->message);
      if (const auto* alive = std::get_if<protocol::CoordinatorSession::KeepAlive>(&event)) {
        ++keep_alives;
        if (keeps) session->kept(alive->number, good_for_ms, asks, out);
      }
      if (const auto* holds = std::get_if<protocol::CoordinatorSession::Holds>(&event)) promises.push_back(*holds);
    }
    return out;
  }
  protocol::ByteString say(const protocol::CoordinatorMessage& message) {
    protocol::ByteString out;
    session->send(message, out);
    return out;
  }
  // The agent's last message of this kind; null if there is none.
  template <class Message>
  const Message* last() const {
    for (auto message = heard.rbegin(); message != heard.rend(); ++message) {
      if (const auto* found = std::get_if<Message>(&*message)) return found;
    }
    return nullptr;
  }

  std::string secret;
  std::optional<protocol::CoordinatorSession> session;
  protocol::Welcome welcome = {.term = 1, .incarnation = 7, .loss_timeout_ms = 5000};
  bool welcomes = true;                          // introductions are answered by a welcome
  bool keeps = true;                             // keep-alives are answered
  std::optional<std::int64_t> good_for_ms = {};  // what those answers say
  bool asks = false;                             // and whether they ask for the node's support
  std::vector<protocol::CoordinatorSession::Holds> promises;
  std::vector<protocol::Introduction> introductions;
  std::vector<protocol::AgentMessage> heard;
  int keep_alives = 0;
};

}  // namespace elastic::agent::testing
