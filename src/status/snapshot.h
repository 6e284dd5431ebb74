#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/job_states.h"
#include "src/base/outcome.h"
#include "src/base/worker_start.h"

// The state of an elastic-run process at one moment, as plain values, of which /status, /metrics and --status are
// made. Times are in milliseconds and filled in by the caller; nothing here reads a clock.
namespace elastic::status {

struct Failure {
  std::int64_t round = 0;
  RoundCause cause = RoundCause::kWorkerFailure;
  std::string node = {};  // its name; empty: not known, or the job's only node
  std::optional<int> node_rank = {};
  std::optional<int> rank = {};  // that of the worker that failed first
  std::string text = {};         // a sentence without its full stop
  std::int64_t age_ms = 0;
};

// The last check before training.
struct Check {
  std::int64_t round = 0;
  std::int64_t fit = 0;  // the number of nodes; each node counts in one of these four
  std::int64_t slow = 0;
  std::int64_t faulty = 0;
  std::int64_t undetermined = 0;
  std::int64_t bad_links = 0;
  double seconds = 0;                              // how long the check took
  std::optional<double> slowest_busbw_bytes = {};  // bytes per second of the slowest pair that passed
};

// How far a rank is (docs/progress.md).
struct Progress {
  std::optional<int> rank = {};           // not set: one of several that write the same file
  std::optional<std::int64_t> step = {};  // not set: there are signs of progress without one
  std::optional<std::int64_t> millisteps_per_second = {};
  std::int64_t age_ms = 0;            // since its last sign of progress
  std::string_view source = "lines";  // where that was seen
  std::string_view phase = "unknown";
};

// Where the watch for hangs stands (docs/hangs.md): off, or one of hang::HangState, in its order.
enum class HangState : std::uint8_t { kOff, kIdle, kStarting, kArmed, kSuspect, kConfirmed, kCollecting, kJudged };
inline constexpr std::size_t kHangStates = 8;
std::string_view name_of(HangState state);  // "armed"

// The last hang that was told of a job.
struct Hang {
  std::int64_t round = 0;
  int rule = 0;                         // of the verdict, with its name
  std::string verdict = {};             // "behind"; empty: not known
  std::string fault = {};               // "none", "script", "soft", "hard"
  std::string cause = {};               // a clause
  std::vector<int> ranks = {};          // at fault, as many as a verdict names
  std::vector<std::string> nodes = {};  // the names of their nodes, and of nodes at fault as a whole
  std::int64_t silent_ms = 0;           // without progress when it was told
  std::int64_t age_ms = 0;              // since it was told
  bool is_over = false;                 // progress has come after it, or its round has ended
};

struct HangLine {
  HangState state = HangState::kOff;
  std::int64_t silent_ms = 0;                 // since the last sign of progress, or since the round began
  std::optional<std::int64_t> limit_ms = {};  // for which there may be none; not set: no limit holds
  std::string_view limit_from = "none";       // "learned", "flag", "first", "none", "fact", "section"
  std::string_view phase = "unknown";         // what the script does, as far as it has said so
  std::int64_t told = 0;                      // hangs that were told, over all rounds
  std::int64_t recovered = 0;                 // of those: progress came by itself
  std::int64_t withdrawn = 0;                 // alarms that were withdrawn, since progress came before the verdict
  std::optional<Hang> last = {};
};

struct Member {
  std::string name = {};
  MemberPlace place = MemberPlace::kWaiting;
  std::optional<int> node_rank = {};  // in this round
  int workers = 0;
  bool hosts_coordinator = false;
  std::int64_t silent_ms = 0;  // since its last message
  // Where it can be asked for the coordinator, and can host it when that is lost: "10.0.0.2:40123"; empty: nowhere.
  std::string peer_address = {};
  std::optional<Progress> progress = {};  // of its rank that gave the last sign of progress; not set: none did
};

struct Job {
  std::string id = {};
  JobPhase phase = JobPhase::kWaiting;
  std::int64_t phase_for_ms = 0;           // how long it has been in this phase
  std::optional<std::int64_t> round = {};  // the last one that was prepared
  std::int64_t world_size = 0;             // of that round
  int min_nodes = 0;
  int max_nodes = 0;
  int restarts_charged = 0;  // out of max_restarts
  int max_restarts = 0;
  std::int64_t node_losses = 0;
  std::string again_because = {};  // why the last round began, as a clause; empty: it was the first
  std::array<std::int64_t, kMemberPlaces> nodes = {};
  std::array<std::int64_t, kRoundCauses> rounds = {};    // rounds begun
  std::array<std::int64_t, kRoundCauses> restarts = {};  // rounds after one whose workers had run
  std::array<std::int64_t, kRoundCauses> lost_work_ms = {};
  std::array<std::int64_t, kJobPhases> phase_ms = {};  // time spent so far, the current phase included
  std::vector<Failure> failures = {};                  // the newest first, limits::kStatusFailures at most
  std::int64_t checks = 0;
  std::optional<Check> check = {};
  // In the round that runs: the rank with the last sign of progress of all, and of those that ever gave one the rank
  // that has given none for the longest time; how many ranks gave one.
  std::optional<Progress> newest = {};
  std::optional<Progress> oldest = {};
  std::int64_t speakers = 0;
  HangLine hang = {};
  std::vector<Member> members = {};  // limits::kStatusNodes at most
  std::size_t members_left_out = 0;
};

struct EndedJob {
  std::string id = {};
  Outcome outcome = Outcome::kSucceeded;
  std::string reason = {};  // a sentence; empty on success
};

// What the process that has the coordinator knows.
struct Coordinator {
  std::vector<Job> jobs = {};
  std::int64_t connections = 0;                               // from agents
  std::array<std::int64_t, kOutcomeNames.size()> ended = {};  // all jobs that have ended so far
  std::vector<EndedJob> last_ended = {};                      // the newest first, limits::kStatusEndedJobs at most
};

struct Worker {
  int local_rank = 0;
  int rank = 0;
  std::int64_t pid = 0;
  bool running = false;
  std::optional<Progress> progress = {};
};

// Whether the node's next round can take workers that have imported already (docs/warm-workers.md).
enum class Warmth : std::uint8_t { kOff, kPreparing, kReady, kCold };
inline constexpr std::size_t kWarmths = 4;
std::string_view name_of(Warmth warmth);  // "ready"
struct WarmWorkers {
  Warmth state = Warmth::kOff;
  int waiting = 0;       // workers that wait for a rank
  std::string why = {};  // what the others lack, or why there will be none, as a clause
};

// The worker store that this process serves, and counts of all that it has served.
struct Store {
  std::map<std::string, std::int64_t> operations = {};  // by name, over all rounds
  std::int64_t connections = 0;                         // now
  std::int64_t keys = 0;
  std::int64_t bytes = 0;
};

struct Node {
  std::string job = {};
  std::string name = {};
  NodeActivity activity = NodeActivity::kWaiting;
  std::string waits_for = {};              // as a clause, while its workers do not run
  std::optional<std::int64_t> round = {};  // the last one that it was in
  int node_rank = 0;                       // in that round, like what follows
  int node_count = 0;
  std::int64_t world_size = 0;
  int restart_count = 0;
  int max_restarts = 0;
  std::vector<Worker> workers = {};       // in that round
  std::optional<WorkerStart> start = {};  // of those workers; not set: they are not started
  WarmWorkers warm = {};
  std::int64_t workers_started = 0;  // over all rounds
  std::int64_t workers_failed = 0;   // over all rounds; those that were told to stop do not count
  std::int64_t warm_started = 0;     // of workers_started
  std::int64_t spared_cpu_ms = 0;    // by the warm ones: processor time of imports, over all rounds
  bool hosts_coordinator = false;
  std::string endpoint = {};  // where the coordinator is looked for; empty: the job has this node only
  std::string coordinator_at =
      {};                 // where the coordinator has moved: "10.0.0.2:40123"; empty: it is here, or not known
  bool connected = true;  // with the coordinator
  Store store = {};
  std::optional<Progress> progress = {};  // of the rank that gave the last sign of progress; not set: none did

  // Whether its workers run in a round.
  bool ready() const { return activity == NodeActivity::kRunning; }
};

struct Snapshot {
  std::string version = {};
  std::int64_t uptime_ms = 0;
  std::optional<Node> node = {};                // not set: --coordinator-only
  std::optional<Coordinator> coordinator = {};  // not set: it is in another process
  std::map<int, std::int64_t> http_answers = {};
  bool counts_only = false;  // names and texts are left out
};

}  // namespace elastic::status
