#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/outcome.h"

// What a process of elastic-run tells of itself at one moment, as plain values: /status, /metrics and --status are
// made of it. Times are milliseconds by whoever fills it in, never of a clock.
namespace elastic::status {

// What a job does; one at a time. docs/status.md says what is in which.
enum class Phase : std::uint8_t { kWaiting, kRebuilding, kChecking, kPreparing, kRunning, kStopping };
inline constexpr std::size_t kPhases = 6;
std::string_view name_of(Phase phase);  // "waiting"

// Why a round began, or ended.
enum class Cause : std::uint8_t { kFirst, kWorkerFailure, kNodeLost, kMembershipChange, kCheck, kCoordinatorLost };
inline constexpr std::size_t kCauses = 6;
std::string_view name_of(Cause cause);  // "worker_failure"

// Where a node stands in its job.
enum class Place : std::uint8_t { kWaiting, kChecking, kInRound, kStopping, kStandby, kLost, kKeptOut, kUnfit };
inline constexpr std::size_t kPlaces = 8;
std::string_view name_of(Place place);  // "in_round"

struct Failure {
  std::int64_t round = 0;
  Cause cause = Cause::kWorkerFailure;
  std::string node = {};  // as it calls itself; empty: not known, or the job's only one
  std::optional<int> node_rank = {};
  std::optional<int> rank = {};  // of the worker that failed first
  std::string text = {};         // a sentence without its full stop
  std::int64_t age_ms = 0;
};

// The last check before training.
struct Check {
  std::int64_t round = 0;
  std::int64_t fit = 0;  // nodes, each in one of the four
  std::int64_t slow = 0;
  std::int64_t faulty = 0;
  std::int64_t undetermined = 0;
  std::int64_t bad_links = 0;
  double seconds = 0;                              // that it took
  std::optional<double> slowest_busbw_bytes = {};  // per second, of the slowest pair that passed
};

struct Member {
  std::string name = {};
  Place place = Place::kWaiting;
  std::optional<int> node_rank = {};  // in the round
  int workers = 0;
  bool hosts_coordinator = false;
  std::int64_t silent_ms = 0;  // since it was last heard of
};

struct Job {
  std::string id = {};
  Phase phase = Phase::kWaiting;
  std::int64_t phase_for_ms = 0;           // that it has been in this phase
  std::optional<std::int64_t> round = {};  // the last that was prepared
  std::int64_t world_size = 0;             // of that
  int min_nodes = 0;
  int max_nodes = 0;
  int restarts_charged = 0;  // of max_restarts
  int max_restarts = 0;
  std::int64_t node_losses = 0;
  std::string again_because = {};  // why the last round began, as a clause; empty: it was the first
  std::array<std::int64_t, kPlaces> nodes = {};
  std::array<std::int64_t, kCauses> rounds = {};    // begun
  std::array<std::int64_t, kCauses> restarts = {};  // rounds after one whose workers had run
  std::array<std::int64_t, kCauses> lost_work_ms = {};
  std::array<std::int64_t, kPhases> phase_ms = {};  // spent so far, the present one included
  std::vector<Failure> failures = {};               // the newest first, limits::kStatusFailures at most
  std::int64_t checks = 0;
  std::optional<Check> check = {};
  std::vector<Member> members = {};  // limits::kStatusNodes at most
  std::size_t members_left_out = 0;
};

struct EndedJob {
  std::string id = {};
  Outcome outcome = Outcome::kSucceeded;
  std::string reason = {};  // a sentence; empty on success
};

// What a coordinator's process knows.
struct Coordinator {
  std::vector<Job> jobs = {};
  std::int64_t connections = 0;                               // of agents
  std::array<std::int64_t, kOutcomeNames.size()> ended = {};  // jobs that are over, of all times
  std::vector<EndedJob> last_ended = {};                      // the newest first, limits::kStatusEndedJobs at most
};

// What a node does.
enum class Activity : std::uint8_t {
  kWaiting,
  kStandby,
  kPreparing,
  kChecking,
  kRunning,
  kSucceeded,
  kStopping,
  kEnded
};
inline constexpr std::size_t kActivities = 8;
std::string_view name_of(Activity activity);  // "running"

struct Worker {
  int local_rank = 0;
  int rank = 0;
  std::int64_t pid = 0;
  bool running = false;
};

// A worker store that this process serves, and all that it has served.
struct Store {
  std::map<std::string, std::int64_t> operations = {};  // by name, of all rounds
  std::int64_t connections = 0;                         // now
  std::int64_t keys = 0;
  std::int64_t bytes = 0;
};

struct Node {
  std::string job = {};
  std::string name = {};
  Activity activity = Activity::kWaiting;
  std::string waits_for = {};              // where it does not run, as a clause
  std::optional<std::int64_t> round = {};  // the last that it was in
  int node_rank = 0;                       // in that, as what follows
  int node_count = 0;
  std::int64_t world_size = 0;
  int restart_count = 0;
  int max_restarts = 0;
  std::vector<Worker> workers = {};  // of that round
  std::int64_t workers_started = 0;  // of all rounds
  std::int64_t workers_failed = 0;   // by themselves: those that were told to stop do not count
  bool hosts_coordinator = false;
  std::string endpoint = {};  // where the coordinator is looked for; empty: the job has this node only
  bool connected = true;      // to the coordinator
  Store store = {};

  // Its workers run in a round.
  bool ready() const { return activity == Activity::kRunning; }
};

struct Snapshot {
  std::string version = {};
  std::int64_t uptime_ms = 0;
  std::optional<Node> node = {};                // none: --coordinator-only
  std::optional<Coordinator> coordinator = {};  // none: it is in another process
  std::map<int, std::int64_t> http_answers = {};
  bool counts_only = false;  // names and texts were left out
};

}  // namespace elastic::status
