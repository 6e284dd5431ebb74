// No check of a node fails, whatever a coordinator says, users do and processes answer, in any order.
#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/agent/lifecycle.h"
#include "src/base/check_test_support.h"
#include "src/base/overloaded.h"

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

constexpr int kWorkers = 3;

// A node that gets random events, of those that may happen.
class Walk {
 public:
  // How often each kind of effect was wanted.
  using Seen = std::array<int, std::variant_size_v<Effect::variant>>;

  Walk(std::uint64_t seed, Seen& seen)
      : seed_(seed * 2 + 1),
        seen_(seen),
        life_({.local_world_size = kWorkers,
               .ignore_stuck_workers = chance(2),
               .leave_background = chance(4),
               .signals_are_shared = chance(2),
               .logs = chance(2),
               .has_segment_file = chance(4),
               .hosts_coordinator = chance(2),
               .coordinator_may_move = chance(2),
               .terms = {.min_nodes = 1, .max_nodes = 2, .max_restarts = 3},
               .shares_details = true,
               .tells_crashes = true,
               .error_files_stop = chance(2)}) {}

  bool is_over() const { return is_over_; }

  void step() {
    now_ms_ += static_cast<std::int64_t>(pick(4) * pick(1500));
    switch (pick(10)) {
      case 0:
      case 9:
      case 8: return message();
      case 1: return chance(3) ? error_file() : worker_ends();
      case 2:
        if (awaits_all_gone_ && running_.empty()) {
          awaits_all_gone_ = false;
          on(AllGone{});
        }
        return;
      case 3:
        if (has_timer_) {
          has_timer_ = false;
          on(TimerFired{});
        }
        return;
      case 4:
        if (chance(20)) on(SignalReceived{signals_[pick(signals_.size())], chance(3) ? 4711 : 0});
        return;
      case 5: return link();
      default: return answer();
    }
  }

 private:
  std::size_t pick(std::size_t count) {
    seed_ = seed_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(seed_ >> 33) % count;
  }
  bool chance(std::size_t one_in) { return pick(one_in) == 0; }

  void on(const Event& event) {
    for (const Effect& effect : life_.on_event(event, now_ms_)) {
      ++seen_[effect.index()];
      std::visit(
          Overloaded{
              [&](const StartTimer&) { has_timer_ = true; }, [&](const StopTimer&) { has_timer_ = false; },
              [&](const AwaitAllGone&) { awaits_all_gone_ = true; }, [&](const AbandonWorkers&) { give_workers_up(); },
              [&](const LeaveBackground&) { give_workers_up(); },
              [&](const OpenStore&) { stores_.emplace_back(StoreOpened{}); },
              [&](const OpenLogs& e) { answers_.emplace_back(LogsOpened{e.round}); },
              [&](const LookAtSegment&) { answers_.emplace_back(SegmentSeen{chance(20) ? "/d/f" : ""}); },
              [&](const CheckNode& e) {
                answers_.emplace_back(NodeChecked{e.round, e.phase, "ok"});
              },
              [&](const NameSurvivors&) { answers_.emplace_back(SurvivorsNamed{"process 7"}); },
              [&](const FindBackground&) { answers_.emplace_back(BackgroundFound{}); },
              [&](const GatherDetails&) { answers_.emplace_back(DetailsGathered{"Traceback"}); },
              [&](const FindCrash& e) {
                answers_.emplace_back(CrashFound{e.round, Crash{}});
              },
              [&](const CollectStacks& e) { answers_.emplace_back(StacksCollected{{.collection = e.collection}}); },
              [&](const ReadEvidence& e) {
                answers_.emplace_back(EvidenceRead{e.order.round, e.order.collection, {}});
              },
              [&](const AwaitDumps& e) { answers_.emplace_back(DumpsAwaited{e.round}); },
              [&](const StartWorkers&) { starts_ = true; }, [&](const Finish&) { is_over_ = true; },
              [](const auto&) {}},
          effect);
    }
    if (!std::exchange(starts_, false)) return;
    for (int rank = 0; rank < kWorkers; ++rank) {
      if (chance(30)) return on(WorkerNotStarted{rank, "no such file"});
      running_.insert(rank);
      on(WorkerStarted{rank, 100 + rank});
    }
  }

  void give_workers_up() {
    running_.clear();
    awaits_all_gone_ = false;
  }

  // Answers come late or never; those about stores come in the order of the orders.
  void answer() {
    if (!stores_.empty() && chance(2)) {
      const Event opened = stores_.front();
      stores_.pop_front();
      return on(chance(5) ? Event{StoreFailed{"port in use"}} : opened);
    }
    if (answers_.empty()) return;
    const std::size_t which = pick(answers_.size());
    const Event event = answers_[which];
    answers_.erase(answers_.begin() + static_cast<std::ptrdiff_t>(which));
    const auto* logs = std::get_if<LogsOpened>(&event);
    on(logs != nullptr && chance(5) ? Event{LogsFailed{logs->round, "disk full"}} : event);
  }

  void worker_ends() {
    if (running_.empty()) return;
    const int rank = *running_.begin();
    running_.erase(rank);
    const ExitStatus ends[] = {{.code = 1}, {.signal = SIGTERM}, {.signal = SIGKILL}};
    on(WorkerExited{rank, chance(3) ? ends[pick(3)] : ExitStatus{}, 7});
  }

  void error_file() {
    if (!running_.empty()) on(ErrorFileWritten{round_, *running_.rbegin()});
  }

  void link() {
    if (chance(200)) return on(GuardianLost{});
    if (chance(200)) return on(GivenUp{"not found"});
    if (chance(20)) return on(LeaseOver{});
    on(chance(2) ? Event{Detached{}} : Event{Attached{}});
  }

  // Messages of any coordinator, also of one that makes no sense.
  void message() {
    const RoundNumber round = chance(6) ? round_ + 1 : round_;
    const int node_rank = static_cast<int>(pick(2));
    switch (pick(11)) {
      case 0:
      case 1:
        round_ += chance(4) ? 0U : 1U;
        return tell(PrepareRound{.round = round_,
                                 .restart_count = static_cast<int>(pick(4)),
                                 .max_restarts = 3,
                                 .place = {node_rank, 2, 0, 6, 0, 6},
                                 .reason = "node 1 was lost",
                                 .membership = 9,
                                 .error_files_wait = chance(8)});
      case 2:
      case 3: return tell(RunWorkers{round, {"h", 1}});
      case 4: return tell(StopWorkers{.round = round, .hangs = chance(4), .aborts = chance(2), .dumps = chance(2)});
      case 5: return tell(RunCheck{round, static_cast<std::uint32_t>(pick(3)), "go"});
      case 6: return tell(Awaiting{.here = 1, .least = 2, .most = 2, .for_ms = static_cast<std::int64_t>(pick(9999))});
      case 7:
        if (chance(20)) tell(Rejected{static_cast<Rejected::Why>(pick(3)), "no", {}});
        return;
      case 8:
        if (chance(life_.has_job_result() ? 4 : 50)) tell(Dismiss{"details"});
        return;
      case 9: return look_at_workers(round);
      default:
        if (chance(3)) end_job();
    }
  }

  void look_at_workers(RoundNumber round) {
    switch (pick(5)) {
      case 0: return tell(StacksWanted{1});
      case 1: return tell(CollectEvidence{.round = round, .collection = static_cast<std::uint32_t>(pick(3))});
      case 2: return tell(HangTold{.round = round, .what = static_cast<HangTold::What>(pick(2))});
      case 3: return tell(LoaderTold{.round = round});
      default: return tell(HangOver{.round = round, .why = static_cast<HangOver::Why>(pick(2))});
    }
  }

  // Mostly with the job result that the workers' end suggests.
  void end_job() {
    const bool fails = !life_.failures().empty();
    JobResult job_result{.outcome = fails ? JobResult::Outcome::kFailed : JobResult::Outcome::kSucceeded,
                         .round = round_};
    if (chance(4)) job_result.outcome = static_cast<JobResult::Outcome>(pick(3));
    if (fails) job_result.failures = {life_.failures().front()};
    tell(EndJob{job_result});
  }

  void tell(const CoordinatorMessage& message) { on(FromCoordinator{message}); }

  std::uint64_t seed_;
  Seen& seen_;
  Lifecycle life_;
  std::int64_t now_ms_ = 1000;
  RoundNumber round_ = 0;
  bool has_timer_ = false;
  bool awaits_all_gone_ = false;
  bool starts_ = false;
  bool is_over_ = false;
  std::set<int> running_;
  std::deque<Event> stores_;
  std::vector<Event> answers_;
  const std::vector<int> signals_{SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT};
};

}  // namespace

TEST_CASE("no order of events, of those that may happen to a node, breaks what holds of it") {
  Walk::Seen seen{};
  for (std::uint64_t seed = 1; seed <= 10'000; ++seed) {
    CAPTURE(seed);
    Walk walk(seed, seen);
    const std::string failed = failed_check([&] {
      for (int step = 0; step < 1000 && !walk.is_over(); ++step) walk.step();
    });
    REQUIRE(failed == "");
  }
  // Each kind of effect was wanted.
  for (std::size_t kind = 0; kind < seen.size(); ++kind) {
    CAPTURE(kind);
    CHECK(seen[kind] > 20);
  }
}
