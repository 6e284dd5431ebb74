#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/protocol/session.h"
#include "src/base/waiting.h"

namespace elastic::agent {

// How a node finds its coordinator, and how long it tries. Times in milliseconds.
struct LinkSettings {
  std::string job = {};
  std::string endpoint = {};  // as the user is told of it: "host0:29400"
  protocol::AgentId agent = 1;
  std::string secret = {};
  std::int64_t join_timeout_ms = 600'000;  // from the beginning until the first welcome
  std::int64_t rejoin_ms = 30'000;         // the same after the lease is over
  std::int64_t greeting_ms = 5'000;        // from a connection to the welcome
  std::uint64_t seed = 1;                  // of the jitter between attempts
  bool may_meet_others = false;  // who answers may be another job's coordinator, and ours elsewhere or yet to come
  // Between two attempts, at most; no longer than LeaseTimes::kLongestPauseMs, on which coordinators count.
  std::int64_t longest_pause_ms = protocol::LeaseTimes::kLongestPauseMs;
  bool local = false;  // the coordinator is in this process: when it is silent, so are we
};

// An agent's tie to the coordinator: connects, introduces itself, keeps the lease, and connects again when
// the connection breaks. It knows nothing of workers; whoever owns it says whether a lease is needed.
//
//   kResting --retry--> kConnecting --> kGreeting --welcome--> kAttached
//      ^                     |              |                     | end, silence, rejection
//      +---------------------+--------------+---------------------+
//   kOver: given up, or told to.
class Link {
 public:
  // What it wants done, in this order.
  struct Connect {};     // answered by connected() or broken()
  struct Disconnect {};  // no answer
  struct Write {
    protocol::ByteString bytes;
  };
  struct Joining {};  // a session begins: NodeJoins is to be sent
  struct Attached {};
  struct Detached {
    std::string why;
  };
  struct Deliver {
    protocol::CoordinatorMessage message;
  };
  // The workers must be gone at once. No connection is tried before may_connect().
  struct LeaseOver {};
  struct GiveUp {
    std::string reason;
  };
  struct Log {
    std::string text;
  };
  using Effect = std::variant<Connect, Disconnect, Write, Joining, Attached, Detached, Deliver, LeaseOver, GiveUp, Log>;
  using Effects = std::vector<Effect>;

  // What the owner knows at the time of a call.
  struct Owner {
    bool needs_lease = false;  // workers are or may be there that others could replace
    bool may_connect = true;   // what a session begins with could be told truthfully
  };

  explicit Link(LinkSettings settings) : settings_(std::move(settings)) {}

  Effects begin(std::int64_t now_ms);
  // The connection is there. `nonce` is random, another each time.
  Effects connected(const protocol::Nonce& nonce, std::int64_t now_ms);
  // It could not be made, or is over.
  Effects broken(const std::string& why, const Owner& owner, std::int64_t now_ms);
  Effects received(protocol::Bytes bytes, const Owner& owner, std::int64_t now_ms);
  // The time of next_deadline_ms() has come, or the owner has changed, or something is about to be done of which
  // the lease must be known.
  Effects look(const Owner& owner, std::int64_t now_ms);
  // Lost where no session is open: the next one begins with all that is known.
  Effects send(const protocol::AgentMessage& message);
  // The coordinator has turned the node away; none: for good.
  Effects rejected(const std::string& reason, std::optional<std::int64_t> retry_ms, std::int64_t now_ms);
  // No word is of use any more.
  void close() { state_ = State::kOver; }

  std::optional<std::int64_t> next_deadline_ms(const Owner& owner) const;

  // The coordinator that it is connected to is in this process, or is not.
  void set_local(bool local) { settings_.local = local; }
  // Of the job, before a connection is there.
  void set_secret(std::string secret) { settings_.secret = std::move(secret); }
  const std::string& secret() const { return settings_.secret; }
  // It is looking for the coordinator.
  std::optional<Waiting> waiting() const;

  protocol::AgentId agent() const { return settings_.agent; }
  bool attached() const { return state_ == State::kAttached; }
  protocol::Term term() const { return term_; }
  // Of the job that the coordinator of the last welcome has; 0 before it.
  protocol::Incarnation incarnation() const { return incarnation_; }
  // From now on the node belongs to this job, and says so when it introduces itself.
  void belongs() { own_incarnation_ = incarnation_; }
  protocol::Incarnation own_incarnation() const { return own_incarnation_; }
  std::optional<std::int64_t> lease_until_ms() const { return lease_until_ms_; }

 private:
  enum class State : std::uint8_t { kResting, kConnecting, kGreeting, kAttached, kOver };

  void rest(std::int64_t delay_ms, std::int64_t now_ms);
  // How long to wait after an attempt that failed.
  std::int64_t back_off();
  // Of the session that ends now. Counts those that have not.
  bool has_lasted(std::int64_t now_ms);
  void detach(const std::string& why, Effects& out);
  void take(const protocol::AgentSession::Event& event, const Owner& owner, std::int64_t now_ms, Effects& out);
  std::int64_t lent_ms(std::optional<std::int64_t> good_for_ms) const;
  void judge_lease(const Owner& owner, std::int64_t now_ms, Effects& out);
  std::int64_t give_up_at() const;

  LinkSettings settings_;
  State state_ = State::kResting;
  std::optional<protocol::AgentSession> session_;
  protocol::LeaseTimes lease_;
  protocol::Term term_ = 0;
  protocol::Incarnation incarnation_ = 0;
  protocol::Incarnation own_incarnation_ = 0;
  bool was_attached_ = false;
  std::string last_problem_;
  int attempts_ = 0;        // that failed, one after the other
  int short_sessions_ = 0;  // sessions that were cut off at once, one after the other
  std::int64_t began_ms_ = 0;
  std::int64_t since_ms_ = 0;          // since when there has been no session, or none was wanted
  std::int64_t try_at_ms_ = 0;         // kResting
  std::int64_t joined_ms_ = 0;         // when this session's NodeJoins was sent
  std::int64_t attached_ms_ = 0;       // kAttached: since when
  std::int64_t greet_until_ms_ = 0;    // kConnecting, kGreeting
  std::int64_t keep_alive_at_ms_ = 0;  // kAttached
  std::int64_t heard_ms_ = 0;          // kAttached: the last whole word of the coordinator
  std::optional<std::int64_t> lease_until_ms_;
};

}  // namespace elastic::agent
