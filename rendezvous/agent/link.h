#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/election/follower.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/protocol/session.h"
#include "src/base/waiting.h"

namespace elastic::agent {

// How the reason of a job result begins if a node has looked for its coordinator for as long as it may.
inline constexpr const char* kFoundNoCoordinator = "found no coordinator";
inline constexpr const char* kLostCoordinator = "lost the coordinator";

// How a node finds its coordinator, and how long it tries. Times are milliseconds.
struct LinkSettings {
  std::string job = {};
  std::string endpoint = {};  // for messages: "host0:29400"; empty: they name none
  protocol::AgentId agent = 1;
  std::string secret = {};
  std::int64_t join_timeout_ms = 600'000;  // from begin() until a coordinator has welcomed the node
  // From the end of the lease until the node is welcomed again, by this coordinator or another. Where no other can be
  // elected, a node of the job ends with its lease, or a lease later if it notices the loss only then.
  std::int64_t rejoin_ms = 30'000;
  std::int64_t greeting_ms = 5'000;  // from the attempt to connect until the welcome
  std::uint64_t seed = 1;            // of the random part of the pauses between attempts
  // The coordinator that answers may be another job's, while this job's is at another place, or not there yet.
  bool may_meet_others = false;
  // Discovery is a file, which knows where it leads: the text of a broken connection tells more than a timeout.
  bool discovery_explains = false;
  bool local = false;  // the coordinator is in this process, so its silence is ours
};

// An agent's link to the coordinator: it connects, introduces itself, keeps the lease, and connects again when the
// connection breaks. It knows nothing of workers; its owner says whether a lease is needed.
//
//   kResting --retry--> kConnecting --> kGreeting --welcome--> kAttached
//      ^                     |              |                     | end, silence, rejection
//      +---------------------+--------------+---------------------+
//   kOver: the link has given up, was rejected for good, or was closed.
class Link {
 public:
  // Effects: what a link wants done, in this order.
  struct Connect {                                // answered by connected() or broken()
    std::optional<election::PeerTarget> to = {};  // empty: to discovery
  };
  struct Disconnect {          // no answer
    bool is_stranger = false;  // the process that answered knows nothing of the job
  };
  struct Write {
    protocol::ByteString bytes;
  };
  struct Joining {};  // a session begins: the owner is to send NodeJoins
  struct Attached {};
  struct Detached {
    std::string why;
    std::optional<std::int64_t> votes_for_ms = {};  // as in agent::Detached
  };
  struct Deliver {
    protocol::CoordinatorMessage message;
  };
  // The owner must kill the workers at once. No connection is tried before Owner::may_connect.
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
    bool needs_lease = false;   // workers run, or may run, whose ranks other nodes could be given
    bool may_connect = true;    // NodeJoins would describe the node as it will be
    bool runs_workers = false;  // of the last round that was prepared
  };

  explicit Link(LinkSettings settings) : settings_(std::move(settings)), follower_(settings_.agent) {}

  Effects begin(std::int64_t now_ms);
  struct Connected {
    protocol::Nonce nonce{};    // random, another for each connection
    bool is_same_place = true;  // the coordinator of the last session was reached there
    bool may_begin = true;      // protocol::Introduction
  };
  Effects connected(const Connected& connection, std::int64_t now_ms);
  // The connection could not be made, or has ended. `has_refused`: the kernel says that nothing listens any more where
  // the last session was. `is_further`: of several hosts of the endpoint a further one was asked; what went wrong at
  // the first tells more.
  Effects broken(const std::string& why, bool has_refused, const Owner& owner, std::int64_t now_ms,
                 bool is_further = false);
  Effects received(protocol::Bytes bytes, const Owner& owner, std::int64_t now_ms);
  // To be called when the time of next_deadline_ms() has come, when the owner has changed, and before the owner does
  // anything that it may only do under a lease.
  Effects on_time(const Owner& owner, std::int64_t now_ms);
  // Without a session the message is lost: the next session's NodeJoins tells all that the node knows.
  Effects send(const protocol::AgentMessage& message);
  // The coordinator has rejected the node; without `retry_ms` for good.
  Effects rejected(const std::string& reason, std::optional<std::int64_t> retry_ms, std::int64_t now_ms);
  // The owner has ended, and nothing is sent any more.
  Effects close();

  std::optional<std::int64_t> next_deadline_ms(const Owner& owner) const;

  // Whether the coordinator that the link is connected to is in this process.
  void set_local(bool local) { settings_.local = local; }
  // The job's secret, to be set before a connection is there.
  void set_secret(std::string secret) { settings_.secret = std::move(secret); }
  const std::string& secret() const { return settings_.secret; }
  // What the link waits for, for the user; empty while it is attached.
  std::optional<Waiting> waiting() const;

  protocol::AgentId agent() const { return settings_.agent; }
  const election::Follower& follower() const { return follower_; }
  const std::string& endpoint() const { return settings_.endpoint; }
  bool attached() const { return state_ == State::kAttached; }
  // The link is attached, and the coordinator has answered the last keep-alives: agents that look for it may be
  // redirected there.
  bool hears_coordinator(std::int64_t now_ms) const;
  protocol::Term term() const { return term_; }
  // The job's incarnation, as the last welcome has it; 0 before the first.
  protocol::Incarnation incarnation() const { return incarnation_; }
  // The loss timeout of the coordinator that has welcomed the node last, in milliseconds.
  std::int64_t loss_timeout_ms() const { return lease_.loss_timeout_ms; }
  // The node has been in a round of the job, or an order for one may be on its way.
  bool may_be_in_round() const { return own_incarnation_ != 0 || attached(); }
  // From now on the node belongs to this job, and says so when it introduces itself.
  void belongs() { own_incarnation_ = incarnation_; }
  protocol::Incarnation own_incarnation() const { return own_incarnation_; }
  std::optional<std::int64_t> lease_until_ms() const { return lease_until_ms_; }
  // From when on another coordinator may be elected in this process: the one that the node voted for is lost. Empty: it
  // is not lost, or no coordinator has asked for the node's vote.
  std::optional<std::int64_t> may_elect_from_ms(std::int64_t now_ms) const;
  // The agent votes for the coordinator in its own process, which has not resigned.
  bool votes_for_own() const { return state_ != State::kOver && follower_.votes_for_own(); }
  // That coordinator is gone.
  void own_is_over(std::int64_t now_ms) { follower_.own_is_over(now_ms); }
  // Checks that session, connection and times fit the state. The owner calls it after each event.
  void check_invariants() const;

 private:
  friend struct LinkBreaker;  // a test's

  enum class State : std::uint8_t { kResting, kConnecting, kGreeting, kAttached, kOver };

  // Keeps what went wrong, for the user. `is_refused`: another process has answered, and said it.
  void failed(std::string why, bool is_refused = false);
  void rest(std::int64_t delay_ms, std::int64_t now_ms);
  // Like rest(), after an attempt or a session that failed.
  void try_again(bool has_refused, bool at_once, std::int64_t now_ms);
  election::Follower::Node node(const Owner& owner, std::int64_t now_ms) const;
  // The pause in milliseconds after an attempt that failed.
  std::int64_t back_off();
  // A random number from 0 to `most`.
  std::int64_t random(std::int64_t most);
  // Whether the session that ends now has lasted; counts those in a row that have not.
  bool has_lasted(std::int64_t now_ms);
  void disconnect(Effects& out, bool is_stranger = false);
  void detach(const std::string& why, Effects& out, std::optional<std::int64_t> votes_for_ms = {});
  void on_session_event(const protocol::AgentSession::Event& event, const Owner& owner, std::int64_t now_ms,
                        Effects& out);
  void on_message(const protocol::CoordinatorMessage& message, std::int64_t now_ms, Effects& out);
  std::int64_t granted_ms(std::optional<std::int64_t> good_for_ms) const;
  void judge_lease(const Owner& owner, std::int64_t now_ms, Effects& out);
  void give_up(std::int64_t now_ms, Effects& out);
  // The coordinator is elsewhere, and nobody else can lead the job.
  bool is_bound_to_coordinator() const { return follower_.is_bound() && !settings_.local; }
  std::int64_t silent_until_ms() const;
  std::int64_t give_up_at() const;

  LinkSettings settings_;
  std::optional<protocol::AgentSession> session_;
  protocol::LeaseTimes lease_;
  election::Follower follower_;
  // Small members together: a job of 10,000 nodes is simulated in one process.
  State state_ = State::kResting;
  bool is_same_place_ = false;   // Connected::is_same_place of the present connection
  bool has_connection_ = false;  // Connect was asked for, and neither Disconnect nor broken() came since
  bool was_attached_ = false;
  bool grants_ = false;           // kAttached: the coordinator is no candidate, as far as is known
  bool has_tried_ = false;        // an attempt has failed since `since_ms_`
  bool is_refused_ = false;       // `last_problem_` is the answer of another process
  bool is_told_to_wait_ = false;  // kResting: by the coordinator that has turned the node away
  // The coordinator in this process transferred its leadership, as the node leaves.
  bool has_transferred_leadership_ = false;
  protocol::Term term_ = 0;
  protocol::Incarnation incarnation_ = 0;
  protocol::Incarnation own_incarnation_ = 0;
  std::string last_problem_;
  int attempts_ = 0;        // failed ones in a row
  int short_sessions_ = 0;  // in a row, each cut off at once
  std::int64_t began_ms_ = 0;
  std::int64_t since_ms_ = 0;          // when the last session ended, or from when on a new one is wanted
  std::int64_t rested_ms_ = 0;         // when the pause before the next attempt began
  std::int64_t try_at_ms_ = 0;         // kResting: when the next attempt is due
  std::int64_t joined_ms_ = 0;         // when this session's HELLO was sent
  std::int64_t attached_ms_ = 0;       // kAttached: when that began
  std::int64_t greet_until_ms_ = 0;    // kConnecting, kGreeting: when the attempt is given up
  std::int64_t keep_alive_at_ms_ = 0;  // kAttached: when the next keep-alive is due
  std::int64_t heard_ms_ = 0;          // kAttached: when the coordinator's last whole frame came
  std::optional<std::int64_t> lease_until_ms_;
};

}  // namespace elastic::agent
