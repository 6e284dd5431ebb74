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

// The session of one agent with the coordinator over one connection, both ends of it: bytes come in, bytes go out; the
// connection itself is the caller's. docs/agent-protocol.md specifies every byte.
//
//   agent                                   coordinator
//     HELLO   version, job, agent, nonce   -->
//                                          <--  CHALLENGE  version, nonce, proof over both nonces
//     PROOF   over both nonces             -->
//     NodeJoins, at once                   -->
//                                          <--  WELCOME  term, incarnation, loss timeout, good for
//     messages, KEEP_ALIVE n               <->  messages, KEPT n, good for
//     HOLDS n                              -->  where KEPT n asks for it
//
// Each end may send REFUSED with a reason instead of the frame that is due, and then closes the connection. A proof is
// a keyed hash; its key is derived from the job's secret, which may be empty.
//
// After the WELCOME each frame carries its incarnation and term. The agent follows those of the coordinator as they
// grow. Either end ignores an older frame, and reports it as Stale.
namespace elastic::protocol {

// The job that an agent wants to join, and what it knows of it already (0: nothing).
struct Introduction {
  std::string job;  // at most limits::kAgentNameBytes
  AgentId agent = 0;
  Incarnation incarnation = 0;
  Term term = 0;
  // Set by the coordinator's process of this incarnation and term, which does not want to join. It sends nothing else,
  // and is answered by REFUSED.
  std::optional<Gossip> gossips = {};
  // The job may be begun there if it has no coordinator yet. False at the further hosts of an endpoint.
  bool may_begin = true;
  bool operator==(const Introduction&) const = default;
};

// What the coordinator sends at the end of the introduction.
struct Welcome {
  Term term = 0;
  Incarnation incarnation = 0;
  // A node is declared lost after so many milliseconds without a message. Its lease is 3/5 of it, and a keep-alive is
  // sent each fifth of it.
  std::int64_t loss_timeout_ms = 5000;
  // The longest lease in milliseconds, counted from when it was asked for; not set: there is no limit. As in
  // LeaseGrant.
  std::optional<std::int64_t> good_for_ms = {};
  // The number of the coordinator's process: that of the agent in it, or another one; 0: not known.
  AgentId host = 0;
  bool operator==(const Welcome&) const = default;
};

// Why a session ends early.
struct SessionError {
  enum class Kind : std::uint8_t {
    kVersion,     // the other side has another major version
    kSecret,      // the proof is wrong: the other side has another secret, or none
    kNotOurs,     // the first bytes are not those of this protocol
    kMalformed,   // a frame cannot be read
    kTooLong,     // a frame is longer than limits::kAgentFrameBytes
    kOutOfOrder,  // a frame came that was not due
    kOlderTerm,   // the coordinator has been replaced by one that the agent has met
    kRefused,     // the other side sent REFUSED, for the reason in the text
  };
  Kind kind = Kind::kMalformed;
  std::string text;  // for a person: "it speaks version 1.2 of the agent protocol, and this node speaks 2.0"
  // kRefused by a process that has proven to know the secret: where the coordinator is to be looked for.
  std::optional<Redirect> redirect = {};
};

// The agent's end.
class AgentSession {
 public:
  struct Welcomed {
    Welcome welcome;
  };
  struct LeaseGrant {
    std::int64_t sent_ms = 0;  // when the keep-alive that was answered had been sent, by the agent's clock
    // How long after that the lease ends, if the coordinator may not grant a whole one.
    std::optional<std::int64_t> good_for_ms = {};
    std::uint64_t number = 0;
    bool asks = false;  // to be answered by acknowledge_lease() if the agent votes for this coordinator
  };
  struct Received {
    CoordinatorMessage message;
  };
  // A message of an older term, incarnation or round than is known here was ignored; or a message of this agent that
  // waited for the WELCOME was not sent, since the WELCOME was of another incarnation.
  struct Stale {
    std::string text;
  };
  using Event = std::variant<Welcomed, LeaseGrant, Received, Stale, SessionError>;

  // `nonce` is random. `secret` may be empty. Tests give another version.
  AgentSession(Introduction introduction, const std::string& secret, const Nonce& nonce,
               const Version& version = kOurVersion);

  // The first bytes to send when the connection is open.
  ByteString begin();
  // Handles bytes that have arrived, and appends bytes to be sent to `out`. After a SessionError it ignores all bytes.
  std::vector<Event> receive(Bytes bytes, ByteString& out);
  // Appends the message to `out`. The first message is NodeJoins. It waits in the session until the CHALLENGE has come,
  // and all others until the WELCOME has. After a SessionError nothing is sent.
  void send(const AgentMessage& message, ByteString& out);
  // Appends a keep-alive to `out`; nothing before the WELCOME.
  void keep_alive(std::int64_t now_ms, ByteString& out);
  // Appends the lease ack that answers the lease grant of this number, with the voter state if it is the first one to
  // this coordinator.
  void acknowledge_lease(std::uint64_t number, std::optional<VoterState> voter_state, ByteString& out);

  // The WELCOME, with the coordinator's present term and incarnation.
  const Welcome& welcome() const { return welcome_; }

 private:
  friend struct SessionBreaker;  // a test's

  enum class State : std::uint8_t { kHello, kProved, kWelcomed, kBroken };
  using Events = std::vector<Event>;
  void on_frame(const Frame& frame, Events& events, ByteString& out);
  void take_challenge(const Frame& frame, Events& events, ByteString& out);
  void take_welcome(const Frame& frame, Events& events, ByteString& out);
  void take_lease_grant(const Frame& frame, Events& events, ByteString& out);
  void take_message(const Frame& frame, Events& events, ByteString& out);
  void send_waiting(Events& events, ByteString& out);
  bool is_stale(const Frame& frame, Events& events);
  void end(SessionError error, const std::string& told, Events& events, ByteString& out);
  Stamp stamp() const;
  // The members fit the state.
  void check_invariants() const;

  Introduction introduction_;
  Key key_;
  Nonce nonce_;
  Version version_;
  State state_ = State::kHello;
  FrameReader reader_;
  ByteString hello_;  // the HELLO frame, which the proofs are over
  std::vector<AgentMessage> waiting_;
  Welcome welcome_;
  std::optional<RoundNumber> round_;  // the highest of any PrepareRound
  std::uint64_t last_keep_alive_ = 0;
  std::deque<std::pair<std::uint64_t, std::int64_t>>
      unanswered_;  // keep-alives: their numbers, and when they were sent
};

// The coordinator's end.
class CoordinatorSession {
 public:
  // The agent has proved that it knows the secret. To be answered by welcome() or refuse(). NodeJoins may follow at
  // once.
  struct Introduced {
    Introduction introduction;
  };
  struct Received {
    AgentMessage message;
  };
  // To be answered by grant_lease(), unless the node has been declared lost.
  struct KeepAlive {
    std::uint64_t number = 0;
  };
  // The agent has received the KEPT of this number, and votes for the coordinator.
  struct LeaseAck {
    std::uint64_t number = 0;
    std::optional<VoterState> voter_state = {};
  };
  // A guardian reports that no process of a round is left on its node. Nothing else comes on its connection.
  struct NodeIsEmpty {
    std::string job;
    AgentId agent = 0;
    Incarnation incarnation = 0;
    RoundNumber round = 0;
    bool operator==(const NodeIsEmpty&) const = default;
  };
  // A message of another incarnation was ignored.
  struct Stale {
    std::string text;
  };
  using Event = std::variant<Introduced, Received, KeepAlive, LeaseAck, NodeIsEmpty, Stale, SessionError>;

  // The arguments are those of AgentSession.
  CoordinatorSession(const std::string& secret, const Nonce& nonce, const Version& version = kOurVersion);

  // Handles bytes that have arrived, and appends bytes to be sent to `out`. After a SessionError it ignores all bytes.
  std::vector<Event> receive(Bytes bytes, ByteString& out);
  // To be called once, after Introduced. The term must not be lower than that of the introduction.
  void welcome(const Welcome& welcome, ByteString& out);
  // The coordinator's term has grown since the welcome, or it has taken over the agents' incarnation.
  void set_stamp(Term term, Incarnation incarnation);
  // Ends the session. The reason is sent to the agent, and where it is to look for the coordinator.
  void refuse(const std::string& reason, ByteString& out, Redirect redirect = {});
  // Before the welcome only Rejected may be sent. After a SessionError nothing is sent, and never a message that the
  // agent's version does not know.
  void send(const CoordinatorMessage& message, ByteString& out);
  // Answers the keep-alive of this number. An answer that grants no lease (0) may be followed by another one. `asks`:
  // the agent is to say that it votes for the coordinator.
  void grant_lease(std::uint64_t number, std::optional<std::int64_t> good_for_ms, bool asks, ByteString& out);
  // The term and the incarnation that frames carry from now on.
  Stamp stamp() const;

 private:
  friend struct SessionBreaker;  // a test's

  enum class State : std::uint8_t { kStart, kChallenged, kIntroduced, kWelcomed, kBroken };
  using Events = std::vector<Event>;
  void on_frame(const Frame& frame, Events& events, ByteString& out);
  void take_hello(const Frame& frame, Events& events, ByteString& out);
  void take_proof(const Frame& frame, Events& events, ByteString& out);
  void take_node_is_empty(const Frame& frame, Events& events, ByteString& out);
  void take_message(const Frame& frame, Events& events, ByteString& out);
  bool has_older_term(const Frame& frame, Events& events, ByteString& out);
  void take_lease_ack(const Frame& frame, Events& events, ByteString& out);
  bool is_of_our_major(const Frame& frame, Events& events, ByteString& out);
  void end(SessionError error, const std::string& told, Events& events, ByteString& out);
  void put_refused(const std::string& reason, ByteString& out, Redirect redirect = {});
  void put_mark(ByteString& out);
  // The members fit the state.
  void check_invariants() const;

  Key key_;
  Nonce nonce_;
  Version version_;
  State state_ = State::kStart;
  FrameReader reader_;
  Introduction introduction_;
  Proof expected_{};  // the agent's right proof
  bool mark_is_sent_ = false;
  bool has_joined_ = false;  // NodeJoins has come
  Welcome welcome_;
};

// All bytes that a guardian sends on a connection of its own when the last process of a round is gone. The launcher,
// which knows the secret, makes them for the guardian, which does not need it.
ByteString node_is_empty_frame(const Introduction& introduction, RoundNumber round, const std::string& secret);

}  // namespace elastic::protocol
