#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/protocol/codec.h"
#include "rendezvous/protocol/frame_reader.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/protocol/proof.h"

// The conversation of one agent with the coordinator over one connection, both ends, without the
// connection: bytes in, bytes out. docs/agent-protocol.md specifies every byte.
//
//   agent                                   coordinator
//     HELLO   version, job, agent, nonce   -->
//                                          <--  CHALLENGE  version, nonce, proof over both nonces
//     PROOF   over both nonces             -->
//     NodeJoins, at once                   -->
//                                          <--  WELCOME  term, incarnation, loss timeout, good for
//     messages, KEEP_ALIVE n               <->  messages, KEPT n, good for
//
// Each end may say REFUSED with a reason in place of what is due, after which the connection is closed.
// A proof is a keyed hash; its key is made of the job's secret (the empty one where there is none).
//
// After the WELCOME each frame says to which incarnation and term it belongs. The agent goes with the
// coordinator's, as they grow; what is older is passed over by either end, by name.
namespace elastic::protocol {

// Which job an agent wants to be in, and what it knows of it already (0: nothing).
struct Introduction {
  std::string job;  // at most limits::kAgentNameBytes
  AgentId agent = 0;
  Incarnation incarnation = 0;
  Term term = 0;
  bool operator==(const Introduction&) const = default;
};

// What the coordinator says at the end of the introduction.
struct Welcome {
  Term term = 0;
  Incarnation incarnation = 0;
  // Milliseconds without a word after which a node is given up; the lease is 3/5 of it, and a keep-alive is
  // sent each fifth.
  std::int64_t loss_timeout_ms = 5000;
  // No lease may last for longer than so many milliseconds after it was asked for, if it is said; as in Kept.
  std::optional<std::int64_t> good_for_ms = {};
  bool operator==(const Welcome&) const = default;
};

// Why a session ends before its time.
struct SessionError {
  enum class Kind : std::uint8_t {
    kVersion,     // the other side's major version is not ours
    kSecret,      // the proof is not right: another secret, or none
    kNotOurs,     // the first bytes are not those of this protocol
    kMalformed,   // what came cannot be read
    kTooLong,     // a frame above limits::kAgentFrameBytes
    kOutOfOrder,  // a frame that is not due
    kOlderTerm,   // the coordinator has been replaced by one that the agent has met
    kRefused,     // the other side said so, for the reason in the text
  };
  Kind kind = Kind::kMalformed;
  std::string text;  // for a person: "it speaks version 2.0 of the agent protocol, and we speak 1.2"
};

// The agent's end.
class AgentSession {
 public:
  struct Welcomed {
    Welcome welcome;
  };
  struct Kept {
    std::int64_t sent_ms = 0;  // when the keep-alive that was answered had been sent, by the agent's clock
    // How long after that the lease ends at the latest, where the coordinator may not lend a whole one.
    std::optional<std::int64_t> good_for_ms = {};
  };
  struct Received {
    CoordinatorMessage message;
  };
  // A message of an older term, incarnation or round than is known here; it was passed over. Also one of
  // ours that waited for the WELCOME, which was of another incarnation; it was not sent.
  struct Stale {
    std::string text;
  };
  using Event = std::variant<Welcomed, Kept, Received, Stale, SessionError>;

  // `nonce` is random. `secret` may be empty. Another version than ours is for tests.
  AgentSession(Introduction introduction, const std::string& secret, const Nonce& nonce,
               const Version& version = kOurVersion);

  // What to send when the connection is there.
  ByteString begin();
  // Takes what has arrived. To be sent is added to `out`. After a SessionError nothing more is taken.
  std::vector<Event> receive(Bytes bytes, ByteString& out);
  // The first message is NodeJoins. Before the CHALLENGE has come it waits in the session, all others
  // before the WELCOME has. After a SessionError nothing is sent.
  void send(const AgentMessage& message, ByteString& out);
  // Before the WELCOME has come there is nothing to keep, and nothing is sent.
  void keep_alive(std::int64_t now_ms, ByteString& out);

  // As the coordinator says it now: term and incarnation may have changed since it was said.
  const Welcome& welcome() const { return welcome_; }

 private:
  enum class State : std::uint8_t { kHello, kProved, kWelcomed, kBroken };
  using Events = std::vector<Event>;
  void on(const Frame& frame, Events& events, ByteString& out);
  void take_challenge(const Frame& frame, Events& events, ByteString& out);
  void take_welcome(const Frame& frame, Events& events, ByteString& out);
  void take_kept(const Frame& frame, Events& events, ByteString& out);
  void take_message(const Frame& frame, Events& events, ByteString& out);
  void send_waiting(Events& events, ByteString& out);
  bool is_stale(const Frame& frame, Events& events);
  void end(SessionError error, const std::string& told, Events& events, ByteString& out);
  Stamp stamp() const;

  Introduction introduction_;
  Key key_;
  Nonce nonce_;
  Version version_;
  State state_ = State::kHello;
  FrameReader reader_;
  ByteString hello_;  // the frame, which the proofs are over
  std::vector<AgentMessage> waiting_;
  Welcome welcome_;
  std::optional<RoundNumber> round_;  // the highest that was to be prepared
  std::uint64_t last_keep_alive_ = 0;
  std::deque<std::pair<std::uint64_t, std::int64_t>> unanswered_;  // keep-alives: number, when sent
};

// The coordinator's end.
class CoordinatorSession {
 public:
  // The secret is known to be shared; to be answered by welcome() or refuse(). NodeJoins may follow at once.
  struct Introduced {
    Introduction introduction;
  };
  struct Received {
    AgentMessage message;
  };
  // To be answered by kept(), unless the node was given up meanwhile.
  struct KeepAlive {
    std::uint64_t number = 0;
  };
  // A guardian's word that no process of a round is left on its node; its connection says no more.
  struct NodeIsEmpty {
    std::string job;
    AgentId agent = 0;
    Incarnation incarnation = 0;
    RoundNumber round = 0;
    bool operator==(const NodeIsEmpty&) const = default;
  };
  // A message of another incarnation than ours; it was passed over.
  struct Stale {
    std::string text;
  };
  using Event = std::variant<Introduced, Received, KeepAlive, NodeIsEmpty, Stale, SessionError>;

  // As the agent's.
  CoordinatorSession(const std::string& secret, const Nonce& nonce, const Version& version = kOurVersion);

  // Takes what has arrived. To be sent is added to `out`. After a SessionError nothing more is taken.
  std::vector<Event> receive(Bytes bytes, ByteString& out);
  // Once, after Introduced. The term is to be no lower than the introduction's.
  void welcome(const Welcome& welcome, ByteString& out);
  // The coordinator's term has grown since the welcome, or the incarnation was taken over from the agents.
  void set_stamp(Term term, Incarnation incarnation);
  // Ends the session; the reason is told to the agent.
  void refuse(const std::string& reason, ByteString& out);
  // Before the welcome only Rejected may be sent. After a SessionError nothing is, nor ever what the agent's version
  // has not.
  void send(const CoordinatorMessage& message, ByteString& out);
  void kept(std::uint64_t number, std::optional<std::int64_t> good_for_ms, ByteString& out);

 private:
  enum class State : std::uint8_t { kStart, kChallenged, kIntroduced, kWelcomed, kBroken };
  using Events = std::vector<Event>;
  void on(const Frame& frame, Events& events, ByteString& out);
  void take_hello(const Frame& frame, Events& events, ByteString& out);
  void take_proof(const Frame& frame, Events& events, ByteString& out);
  void take_node_is_empty(const Frame& frame, Events& events, ByteString& out);
  void take_message(const Frame& frame, Events& events, ByteString& out);
  bool is_of_our_major(const Frame& frame, Events& events, ByteString& out);
  void end(SessionError error, const std::string& told, Events& events, ByteString& out);
  void put_refused(const std::string& reason, ByteString& out);
  void put_mark(ByteString& out);
  Stamp stamp() const;

  Key key_;
  Nonce nonce_;
  Version version_;
  State state_ = State::kStart;
  FrameReader reader_;
  Introduction introduction_;
  std::uint16_t minor_ = 0;  // of the agent's version
  Proof expected_{};         // of the agent
  bool mark_is_sent_ = false;
  bool has_joined_ = false;  // NodeJoins has come
  Welcome welcome_;
};

// What a guardian sends on a connection of its own when the last process of a round is gone, from the first
// byte on: prepared by the launcher, which knows the secret, for the guardian, which need not.
ByteString node_is_empty_frame(const Introduction& introduction, RoundNumber round, const std::string& secret);

}  // namespace elastic::protocol
