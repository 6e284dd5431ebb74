#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rendezvous/discovery/entry.h"

namespace elastic::discovery {

// How an attempt to reach a coordinator has ended.
enum class Tried : std::uint8_t {
  kNot,       // no attempt was made
  kAnswered,  // a coordinator answered, or the peer port of a node
  kRefused,   // no process listens there
  kStranger,  // another kind of server answered, or that of another job
  kSilent,    // there was no answer
};

// A line of the log; `event` is its name in the event stream (docs/observing.md).
struct Tell {
  enum class Level : std::uint8_t { kDebug, kInfo, kWarning };
  Level level = Level::kDebug;
  std::string_view event;
  std::string text;
};

// A node that looks for its job's coordinator by an entry in a file. The entry is read again for each attempt to
// connect, and its places are tried in turn, the leader first: each of them leads to the coordinator, or answers that
// one is being elected. Where there is no entry the node begins the job: it opens a coordinator and writes one. It does
// the same where every place of the entry refuses the connection or belongs to a stranger. Where one is silent the job
// may go on without this node, so its entry is never replaced.
//
// Times are Unix time in milliseconds, for people. The effects of a call are to be performed in their order.
class EntrySearch {
 public:
  struct Settings {
    std::string place = {};         // for messages: "file /shared/meeting"
    protocol::AgentId process = 0;  // of this elastic-run
    std::string host = {};          // the name of its host
    bool may_host = true;           // false: is_host=0
    bool refusal_is_proof = true;   // false: failover_evidence=none
  };

  struct Read {};  // answered by read()
  // Replace `expected` by `desired`, if it is the present text. Answered by written().
  struct Write {
    std::string expected;
    std::string desired;
  };
  // A coordinator is to listen in this process, unless it does already. Answered at once by opened() or not_opened().
  struct Open {};
  // The entry leads other nodes to the coordinator in this process.
  struct Hosts {
    std::string where;
    std::string reason;  // as a clause
  };
  struct Close {};  // the coordinator in this process is to be closed: no node knows of it
  // The attempt is over: a coordinator may be there, or none was found.
  struct Found {
    Entry::Place place;
    bool is_own = false;         // the coordinator is in this process
    bool may_begin = false;      // the node may begin the job if it is not there: protocol::Introduction
    bool is_other_host = false;  // the place is on another host than this node
  };
  struct NotFound {
    RegisterFailure failure;
  };
  using Effect = std::variant<Read, Write, Open, Hosts, Close, Found, NotFound, Tell>;
  using Effects = std::vector<Effect>;

  explicit EntrySearch(Settings settings) : settings_(std::move(settings)) {}

  // What the node knows of its job.
  struct Known {
    bool belongs = false;     // it has been in a round: it begins no job
    bool has_met_it = false;  // it has had a coordinator: where there is no entry the job has ended
  };
  // Looks for the coordinator: answered by Found or NotFound, once. The answers that an earlier attempt waits for are
  // not to be given any more.
  Effects find(const Known& known);
  Effects read(const RegisterAnswer& answer, std::int64_t now_ms);
  // The coordinator listens in this process, and other nodes reach it there.
  Effects opened(const Entry::Place& here, std::int64_t now_ms);
  Effects not_opened(const std::string& problem);
  Effects written(const RegisterAnswer& answer, std::int64_t now_ms);
  // How the attempt to connect to what was Found has ended.
  Effects tried(Tried how, std::int64_t now_ms);
  // Another place of the entry was not tried yet: there is no need to wait before it is.
  bool has_untried() const;

  // Why the last attempt to reach what was Found has failed, for the node's last message: `problem`, with the place's
  // address, the entry's age, and what to do about it.
  std::string explain(const std::string& problem, std::int64_t now_ms) const;

 private:
  void begin(const std::string& expected, const std::string& reason, Effects& out);
  void go_to_next(Effects& out);
  void close_if_unwritten(Effects& out);
  bool is_dead() const;
  const Entry::Place& place(std::size_t which) const;
  std::string who(std::int64_t now_ms) const;

  Settings settings_;
  Known known_;
  bool is_open_ = false;     // a coordinator listens in this process
  bool is_written_ = false;  // an entry that names it was there
  std::string expected_;     // of the Write that is under way, or waits for the coordinator to be opened
  std::string reason_;       // why an entry is written, as a clause
  Entry own_;
  std::string seen_;  // the text of the entry that was read last, of another process
  std::optional<Entry> there_;
  std::vector<Tried> how_;  // by place: the leader's, then those of the next leaders
  std::size_t turn_ = 0;
  bool told_silence_ = false;
};

// The leader of a job keeps its entry up to date, so that newcomers, and nodes that have lost it, find it. No node
// stops training where the file cannot be reached. Answers that an earlier call waits for are not to be given any more.
class EntryKeeper {
 public:
  struct Read {};
  struct Write {
    std::string expected;
    std::string desired;
  };
  // The leader gossips at that place.
  struct Gossip {
    Entry::Place to;
  };
  struct Withdrawn {};  // the answer to withdraw()
  using Effect = std::variant<Read, Write, Gossip, Withdrawn, Tell>;
  using Effects = std::vector<Effect>;

  // `place` is for messages: "file /shared/meeting".
  explicit EntryKeeper(std::string place) : place_(std::move(place)) {}

  // To be called each LeaseTimes::renewal_ms() while this process leads. `own` is its entry, without written_ms.
  Effects check_entry(const Entry& own);
  Effects read(const RegisterAnswer& answer, std::int64_t now_ms);
  Effects written(const RegisterAnswer& answer);
  // The job has ended, or was never begun: the entry is removed if the elastic-run of this number has written it.
  Effects withdraw(protocol::AgentId process);

 private:
  Effects failed(const std::string& reason);
  Effects works();

  std::string place_;
  Entry own_;
  bool withdraws_ = false;
  bool fails_ = false;
};

}  // namespace elastic::discovery
