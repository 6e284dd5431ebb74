#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/protocol/codec.h"

// How a node of a Slurm step gets the job's secret from the coordinator, on a connection of its own: each side shows
// the other a credential that munge has made. Here are the messages only; credentials are made and opened by net/munge.
// docs/agent-protocol.md specifies every byte.
namespace elastic::protocol::munge {

// The first bytes of such a connection, in both directions; the last one is the version.
inline constexpr std::string_view kMark("\x8Emunge\x00\x01", 8);

// What a node sends.
struct Request {
  std::string step;        // "slurm-1234.0": the Slurm step that it belongs to
  std::string credential;  // has agent_payload(); empty: no munged answers on its host
  bool operator==(const Request&) const = default;
};
struct Answer {
  enum class Kind : std::uint8_t {
    kCredential,  // the text is a credential with coordinator_payload()
    kNone,        // no munged answers on the coordinator's host
    kNeeded,      // munged answers on the coordinator's host, and the node sent no credential
    kRefused,     // the text says why
  };
  Kind kind = Kind::kNone;
  std::string text = {};
  bool operator==(const Answer&) const = default;
};
std::string bytes_of(const Request& request);
std::string bytes_of(const Answer& answer);

// Collects the bytes that arrive on such a connection.
class Reader {
 public:
  // Returns false if the bytes are of another protocol, or too many.
  bool add(Bytes bytes);
  // Whether a whole message has arrived. request() and answer() are empty before that, or if it cannot be read.
  bool complete() const;
  std::optional<Request> request() const;
  std::optional<Answer> answer() const;

 private:
  std::string_view body() const;
  std::string heard_;
};

std::string hex(const Nonce& nonce);

// The payloads of the credentials. The coordinator's has the nonce of the request, so that it answers that one only.
std::string agent_payload(const std::string& step, const Nonce& nonce);
std::string coordinator_payload(const std::string& step, const std::string& nonce, const std::string& secret);

// A credential that munged has opened.
struct Opened {
  std::string payload;
  std::uint32_t uid = 0;
};
// Judge the credential of a node (the result is its nonce) and that of the coordinator (the result is the job's
// secret). An error says why it is refused, as a clause.
std::expected<std::string, std::string> judge_agent(const Opened& opened, const std::string& step,
                                                    std::uint32_t our_uid);
std::expected<std::string, std::string> judge_coordinator(const Opened& opened, const std::string& step,
                                                          const Nonce& nonce, std::uint32_t our_uid);

}  // namespace elastic::protocol::munge
