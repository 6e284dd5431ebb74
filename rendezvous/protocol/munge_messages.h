#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/protocol/codec.h"

// How a node of a Slurm step gets the job's secret from the coordinator, on a connection of its own: each side shows
// the other a credential that munge has made. The words alone; who makes and opens credentials is none of this.
// docs/agent-protocol.md specifies every byte.
namespace elastic::protocol::munge {

// The first bytes of such a connection, in both directions; the last one is the version.
inline constexpr std::string_view kMark("\x8Emunge\x00\x01", 8);

// What a node asks with.
struct Request {
  std::string step;        // "slurm-1234.0": which step it is of
  std::string credential;  // of agent_payload(); empty: no munged answers on its host
  bool operator==(const Request&) const = default;
};
struct Answer {
  enum class Kind : std::uint8_t {
    kCredential,  // of coordinator_payload(), in the text
    kNone,        // no munged answers on the coordinator's host
    kNeeded,      // the coordinator has munge, and the node has not
    kRefused,     // for the reason in the text
  };
  Kind kind = Kind::kNone;
  std::string text = {};
  bool operator==(const Answer&) const = default;
};
std::string bytes_of(const Request& request);
std::string bytes_of(const Answer& answer);

// What comes on such a connection, as far as it has come.
class Reader {
 public:
  // False: this is none of it, or too long.
  bool add(Bytes bytes);
  // Both nothing until all is there, or if it means nothing, which complete() tells apart.
  bool complete() const;
  std::optional<Request> request() const;
  std::optional<Answer> answer() const;

 private:
  std::string_view body() const;
  std::string heard_;
};

std::string hex(const Nonce& nonce);

// What is in the credentials. That of the coordinator is good for the one question that it answers.
std::string agent_payload(const std::string& step, const Nonce& nonce);
std::string coordinator_payload(const std::string& step, const std::string& nonce, const std::string& secret);

// A credential that munged has opened.
struct Opened {
  std::string payload;
  std::uint32_t uid = 0;
};
// Of a node: its nonce, or why the node is refused. Of the coordinator: the job's secret, or why it is not believed.
// Clauses.
std::expected<std::string, std::string> judge_agent(const Opened& opened, const std::string& step,
                                                    std::uint32_t our_uid);
std::expected<std::string, std::string> judge_coordinator(const Opened& opened, const std::string& step,
                                                          const Nonce& nonce, std::uint32_t our_uid);

}  // namespace elastic::protocol::munge
