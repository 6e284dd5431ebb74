#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/agent/link.h"
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
        if (keeps) session->grant_lease(alive->number, good_for_ms, asks, out);
      }
      if (const auto* acked = std::get_if<protocol::CoordinatorSession::LeaseAck>(&event)) acks.push_back(*acked);
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
  bool asks = false;                             // whether those answers ask for the node's vote
  std::vector<protocol::CoordinatorSession::LeaseAck> acks;
  std::vector<protocol::Introduction> introductions;
  std::vector<protocol::AgentMessage> heard;
  int keep_alives = 0;
};

// A link whose owner is set by hand, and a coordinator that can be taken away.
struct TiedLink {
  explicit TiedLink(LinkSettings settings = {}, std::string secret = "")
      : link([&] {
          settings.job = "j";
          return settings;
        }()),
        other(std::move(secret)) {}

  // Performs the link's effects, and those that follow from that.
  void carry(Link::Effects effects) {
    for (Link::Effect& effect : effects) {
      log.push_back(effect);
      if (std::holds_alternative<Link::Connect>(effect)) {
        connects_ms.push_back(now_ms);
        if (!reachable) {
          if (answers) carry(link.broken("connection refused", true, owner, now_ms));
          continue;
        }
        other.accept();
        carry(link.connected({.is_same_place = is_same_place}, now_ms));
      }
      if (std::holds_alternative<Link::Joining>(effect)) carry(link.send(protocol::NodeJoins{.local_world_size = 1}));
      if (auto* write = std::get_if<Link::Write>(&effect)) {
        if (hears) receive(other.take(write->bytes));
      }
    }
    link.check_invariants();
  }
  void receive(const protocol::ByteString& bytes) {
    if (!bytes.empty()) carry(link.received(bytes, owner, now_ms));
  }
  void say(const protocol::CoordinatorMessage& message) { receive(other.say(message)); }
  void look() { carry(link.on_time(owner, now_ms)); }
  void begin() {
    carry(link.begin(now_ms));
    look();
  }
  void broken(const std::string& why = "reset") {
    carry(link.broken(why, false, owner, now_ms));
    look();
  }
  // Lets time pass, and calls on_time() at each deadline of the link.
  void pass(std::int64_t ms) {
    const std::int64_t until_ms = now_ms + ms;
    for (int wakes = 0;; ++wakes) {
      REQUIRE(wakes < 100'000);
      const auto next_ms = link.next_deadline_ms(owner);
      if (!next_ms || *next_ms > until_ms) break;
      now_ms = std::max(now_ms, *next_ms);
      carry(link.on_time(owner, now_ms));
    }
    now_ms = until_ms;
  }
  void pass_until_attached() {
    for (int ms = 0; ms < 3000 && !link.attached(); ++ms) pass(1);
  }
  template <class Kind>
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(log, [](const Link::Effect& effect) { return std::holds_alternative<Kind>(effect); }));
  }
  std::string given_up() const {
    for (const Link::Effect& effect : log) {
      if (const auto* found = std::get_if<Link::GiveUp>(&effect)) return found->reason;
    }
    return "";
  }

  Link link;
  Other other;
  Link::Owner owner;
  std::int64_t now_ms = 1'000'000;
  bool is_same_place = true;  // of the next connections
  bool reachable = true;      // connections are made
  bool answers = true;        // a connection that cannot be made is refused at once
  bool hears = true;          // what the link writes arrives
  std::vector<Link::Effect> log;
  std::vector<std::int64_t> connects_ms;
};

}  // namespace elastic::agent::testing
