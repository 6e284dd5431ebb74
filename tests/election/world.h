#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/election/candidate.h"
#include "rendezvous/election/leader_lease.h"
#include "rendezvous/election/voter.h"
#include "src/base/text.h"
#include "tests/election/model.h"
#include "tests/simulation/random.h"

// The model's nodes, coordinators and network; model.h says what it is for.
namespace elastic::election {

using protocol::AgentId;
using simulation::Random;

constexpr protocol::LeaseTimes kTimes;
constexpr std::int64_t kMs = 1000;  // the model's time is in microseconds
constexpr std::int64_t kSecond = 1000 * kMs;
constexpr std::int64_t kRunFor = 240 * kSecond;
constexpr std::int64_t kGiveUpAfter = 45 * kSecond;  // without a coordinator
constexpr std::size_t kReplacements = 6;             // at most so many dead nodes are replaced
constexpr std::int64_t kKillMs = 90;                 // how long workers live on after the end of their lease

// A machine's own clock, which may run up to 0.495 % too fast or too slow.
struct Clock {
  std::int64_t offset_ms = 0;
  std::int64_t rate = 1'000'000;  // local microseconds in a second
  std::int64_t ms(std::int64_t now) const { return offset_ms + now / kMs * rate / 1'000'000; }
};

struct Coordinator {
  std::size_t machine = 0;
  std::optional<std::size_t> node;  // empty: it is on none
  CoordinatorId id;
  bool is_dead = false;
  bool is_proven = false;  // every node that reaches its machine learns that it is dead
  bool is_closed = false;  // it has resigned
  std::optional<Candidate> candidate;
  std::optional<LeaderLease> lease;
  std::int64_t born_ms = 0;
  std::int64_t acted_ms = 0;  // when it had authority last
  std::int64_t others_until_ms = 0;
  struct Attached {
    int session = 0;
    std::int64_t heard_ms = 0;
    std::optional<Round> runs;
  };
  std::map<std::size_t, Attached> attached;         // by node
  std::map<std::size_t, std::int64_t> lease_until;  // of nodes that are not attached any more
  enum class Phase { kWatching, kStopping, kPrepared } phase = Phase::kWatching;
  Round prepared;
  std::vector<std::size_t> members;  // of the prepared round, or of the one that runs
  std::set<std::size_t> heard;
  std::int64_t phase_ms = 0;
  std::int64_t opens_ms = 0;  // how long it takes until the round's store is open
  protocol::RoundNumber highest = 0;

  bool acts(std::int64_t now_ms) const { return !is_dead && !is_closed && lease && lease->authority().holds(now_ms); }
};

struct Node {
  bool is_alive = true;
  Voter voter{kTimes};
  KnownRounds known;
  std::optional<std::size_t> coordinator;  // to which it is attached
  int session = 0;
  int dials = 0;
  std::int64_t dial_at_ms = 0;
  std::int64_t heard_ms = 0;
  std::int64_t keep_alive_at_ms = 0;
  std::int64_t lease_until_ms = 0;
  std::size_t lender = 0;
  std::optional<Round> runs;
  std::int64_t gone_ms = INT64_MIN;  // when the last workers that it has killed are gone
};

// "0 2 3".
std::string names(const auto& numbers) {
  std::vector<std::string> parts;
  for (const auto each : numbers) parts.push_back(format("{}", each));
  return join(parts, " ");
}

class World {
 public:
  World(std::uint64_t seed, Trace trace);
  Seen run();

 private:
  struct Event {
    std::int64_t at;
    std::uint64_t number;
    std::function<void()> action;
    bool operator<(const Event& other) const { return std::pair(at, number) > std::pair(other.at, other.number); }
  };

  void later(std::int64_t delay, std::function<void()> action);
  // The same on a machine, and later if the machine is paused then.
  void after(std::int64_t delay, std::size_t machine, std::function<void()> action);
  // Sends a message, which takes time, and may be lost or late where the network is cut.
  void send(std::size_t from, std::size_t to, std::function<void()> action);
  std::int64_t ms(std::size_t machine) const { return clocks_[machine].ms(now_); }
  static AgentId agent(std::size_t node) { return node + 1; }
  static std::optional<AgentId> own(const Coordinator& c) {
    return c.node ? std::optional(agent(*c.node)) : std::nullopt;
  }
  bool reaches(std::size_t a, std::size_t b) const { return a == b || (!cut_[a][b] && !cut_[b][a]); }

  Coordinator& open(std::size_t machine, protocol::Term term);
  VoterState voter_state_of(std::size_t i) const;

  // --- Agents.

  void attach(std::size_t i, std::size_t c);
  void judge_lease(std::size_t i);
  void tick_node(std::size_t i);
  // The lower bits are random, and few, so that two candidates sometimes have the same term.
  protocol::Term next_term(protocol::Term known);
  void dial(std::size_t i, std::size_t index);
  void challenged(std::size_t i, std::size_t index, int dials, std::int64_t challenge_ms);
  void lease_granted(std::size_t i, std::size_t index, int session, std::int64_t sent_ms, std::int64_t granted_ms,
                     std::int64_t token_ms);
  void told_to_stop(std::size_t i, std::size_t index, int session, const Round& round);
  void told_of_round(std::size_t i, std::size_t index, int session, const Round& round, std::optional<int> rank,
                     const std::vector<Round>& before);
  void told_to_run(std::size_t i, std::size_t index, int session, const Round& round);
  // The node learns that the process of this coordinator is dead.
  void died_for(std::size_t i, std::size_t index);

  // --- Coordinators.

  Coordinator::Attached* find(std::size_t index, std::size_t i, int session);
  // True if the term is later than the coordinator's, which has resigned then.
  bool hears_of(std::size_t index, protocol::Term term);
  void close(std::size_t index);
  void join(std::size_t index, std::size_t i, int session, const VoterState& voter_state, std::int64_t challenge_ms,
            std::optional<Round> runs);
  void keep_alive(std::size_t index, std::size_t i, int session, std::int64_t sent_ms, protocol::Term term);
  void send_lease_grant(std::size_t index, std::size_t i, int session, std::int64_t sent_ms, std::int64_t granted_ms);
  void lease_acked(std::size_t index, std::size_t i, int session, std::int64_t token_ms);
  void drop(std::size_t index, std::size_t i);
  void tick_coordinator(std::size_t index);
  void stand(std::size_t index);
  void hand_over(std::size_t index);
  void go_on(std::size_t index);
  void prepare(std::size_t index);

  // --- Faults.

  void fault();
  void die(std::size_t i, bool is_proven);
  // The coordinator learns of it at once if it has a session with the node; else later by another way, or never.
  void tell_of_death(std::size_t index, std::size_t i);
  void end_process(Coordinator& c, bool is_proven);

  // --- What must always be true.

  void check();
  // A coordinator that is proven dead, or has resigned, does not count: the next one waits for the end of its leases.
  void check_lease(std::size_t i);

  template <class... Args>
  void note(fmt::format_string<Args...> text, Args&&... args) {
    if (trace_) trace_(format("{:6} ms  ", now_ / kMs) + elastic::format(text, std::forward<Args>(args)...));
  }

  Random random_;
  Random kind_;  // a second stream of the seed
  Trace trace_;
  std::int64_t now_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t digest_ = 0;
  std::int64_t checked_ = 0;
  std::int64_t acted_ = 0;  // when some coordinator had authority last
  int faults_ = 1;          // seconds between two faults, at most
  int hand_overs_ = 0;      // how often coordinators resign
  bool is_eager_ = false;   // nodes look for a coordinator as often as they can, and messages are fast
  // How long a node waits for a silent coordinator: at most the loss timeout; agents mostly give their connection up
  // not much later than the lease ends.
  std::int64_t patience_ms_ = kTimes.loss_timeout_ms;
  int other_terms_ =
      7;  // how many other terms a candidate might have taken: with few, two take the same one more often
  std::int64_t stands_for_ms_ = 7'000;  // how long a candidate waits to be elected
  int taken_ = 93;                      // how many of the attached nodes a round takes, in percent
  int resets_ = 0;                      // how often a connection of a node that has just voted is reset, in percent
  std::size_t first_size_ = 0;
  std::size_t started_ = 0;  // so many of the nodes have started; the others may replace dead ones
  std::priority_queue<Event> events_;
  std::vector<Node> nodes_;
  std::vector<Clock> clocks_;
  std::vector<std::int64_t> paused_until_;
  std::vector<std::vector<bool>> cut_;
  std::map<std::pair<std::size_t, std::size_t>, std::int64_t> last_;
  std::vector<std::unique_ptr<Coordinator>> coordinators_;
  std::map<std::uint64_t, std::vector<std::size_t>> members_;  // of each round, by its digest
  std::map<std::size_t, std::uint64_t> lasts_;                 // the round whose workers a node ran last
  Seen seen_;
};

}  // namespace elastic::election
