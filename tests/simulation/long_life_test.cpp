// A day of a job: the real coordinator and the real agent of its one node, with workers that crash as a seed says, on a
// virtual clock. ELASTIC_RUN_SIMULATION_SEED sets the seed.
#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "rendezvous/agent/agent.h"
#include "rendezvous/transport/service.h"
#include "src/base/limits.h"
#include "src/base/overloaded.h"
#include "src/base/signals.h"
#include "src/base/text.h"

using namespace elastic;

namespace {

constexpr int kWorkers = 8;
constexpr protocol::AgentId kAgent = 1;
constexpr transport::ConnectionId kConnection = 1;
constexpr std::int64_t kSecondMs = 1000;
constexpr int kSecondsPerHour = 3600;
// Short, so that a round always ends before the next crash, even if the agent waits half a second for an order, as it
// does after a death by SIGTERM.
constexpr std::int64_t kShutdownTimeoutMs = 300;
constexpr std::int64_t kBeforeCrashMs = 50;
constexpr std::int64_t kLongestEndMs = 30;  // of a worker that heeds SIGTERM
constexpr int kMostFailTogether = 3;
constexpr int kFirstPort = 30'000;
constexpr int kPorts = 20'000;

std::uint64_t seed_of_this_run() {
  const char* text = std::getenv("ELASTIC_RUN_SIMULATION_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

// A job of one node, with simulated workers. It performs the effects of the agent and checks that they
// are allowed.
class Job {
 public:
  Job(int max_restarts, int crashes)
      : random_(seed_of_this_run()),
        crashes_left_(crashes),
        max_restarts_(max_restarts),
        service_({.lease = {.loss_timeout_ms = limits::kMaxTimeoutSeconds * 1000},
                  .own_agent = kAgent,
                  .random = [number = std::uint64_t{0}]() mutable { return ++number; }},
                 0),
        agent_({.local_world_size = kWorkers,
                .shutdown_timeout_ms = kShutdownTimeoutMs,
                .logs = true,
                .terms = {.max_restarts = max_restarts}},
               {.agent = kAgent, .local = true}) {
    on(agent::Begin{});
  }

  // Runs until the clock shows `until_ms`, or until there is no event left.
  void run_until(std::int64_t until_ms) {
    while (!coming_.empty() && coming_.top().at_ms <= until_ms) {
      const Coming next = coming_.top();
      coming_.pop();
      now_ms_ = next.at_ms;
      take_place(next);
    }
    now_ms_ = std::max(now_ms_, until_ms);
  }

  bool ended() const { return job_result_.has_value(); }
  const protocol::JobResult& job_result() const { return *job_result_; }
  int rounds() const { return rounds_; }
  int failures() const { return failures_; }
  int killed() const { return killed_; }
  int alive() const { return alive_; }
  bool store_is_open() const { return store_port_ != 0; }

 private:
  struct Worker {
    bool running = false;
    bool stubborn = false;    // heeds SIGKILL only
    bool child_left = false;  // a process in its group outlives it, until a signal comes
    std::int64_t pid = 0;
  };
  enum class Kind { kWorkerEnds, kGroupGone, kTimer, kCrash };
  struct Coming {
    std::int64_t at_ms;
    std::uint64_t order;  // events of the same time happen in the order in which they were planned
    Kind kind;
    int rank;
    std::int64_t subject;  // the worker's pid, or the timer's number; the event is void if that was replaced
    ExitStatus exit;
    bool operator<(const Coming& other) const { return std::pair(at_ms, order) > std::pair(other.at_ms, other.order); }
  };

  void must(bool holds, const char* what) const {
    if (!holds) {
      FAIL(std::string(what), " (at ", now_ms_, " ms, round ", rounds_, ", seed ", seed_of_this_run(), ")");
    }
  }

  std::int64_t random(std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(to - from + 1));
  }
  bool chance(int percent) { return random(1, 100) <= percent; }

  void plan(std::int64_t delay_ms, Kind kind, int rank, std::int64_t subject, ExitStatus exit = {}) {
    coming_.push({now_ms_ + delay_ms, order_++, kind, rank, subject, exit});
  }

  void on(agent::AgentEvent event) {
    events_.push_back(std::move(event));
    if (deciding_) return;
    deciding_ = true;
    while (!events_.empty()) {
      const agent::AgentEvent next = std::move(events_.front());
      events_.pop_front();
      for (const agent::AgentEffect& effect : agent_.on_event(next, now_ms_)) {
        std::visit([this](const auto& wanted) { perform(wanted); }, effect);
      }
    }
    deciding_ = false;
  }

  // --- Effects of the agent ---

  void perform(const agent::Effect& effect) {
    std::visit([this](const auto& wanted) { perform(wanted); }, effect);
  }

  void perform(const agent::Link::Connect&) {
    must(rounds_ == 0, "the connection is never lost");
    service_.on_event(transport::ConnectionOpened{kConnection}, now_ms_);
    on(agent::LinkConnected{});
  }
  void perform(const agent::Link::Disconnect&) {
    service_.on_event(transport::ConnectionClosed{kConnection, "its connection ended"}, now_ms_);
  }
  void perform(const agent::Link::Write& effect) {
    for (const transport::ServiceEffect& wanted :
         service_.on_event(transport::ConnectionRead{kConnection, effect.bytes}, now_ms_)) {
      const auto* write = std::get_if<transport::Write>(&wanted);
      if (write == nullptr) continue;
      must(write->connection == kConnection, "bytes go to the only node");
      on(agent::LinkReceived{write->bytes});
    }
  }
  void perform(const agent::Link::Deliver&) {}
  void perform(const agent::Link::Log&) {}
  void perform(const agent::StartLinkTimer&) {}  // no answer is late
  void perform(const agent::ToCoordinator&) { must(false, "the link has written it"); }

  void perform(const agent::OpenStore&) {
    must(store_port_ == 0, "the store of the last round is closed before the next is opened");
    must(groups_left_ == 0, "a store is opened when no process of the last round is left");
    store_port_ = kFirstPort + rounds_ % kPorts;
    on(agent::StoreOpened{{"127.0.0.1", static_cast<std::uint16_t>(store_port_)}});
  }

  void perform(const agent::CloseStore&) {
    must(groups_left_ == 0, "a store is closed when no process that could write to it is left");
    store_port_ = 0;
  }

  void perform(const agent::StartWorkers& effect) {
    must(groups_left_ == 0 && alive_ == 0, "two rounds are never alive");
    must(!awaiting_gone_, "workers are started after AllGone");
    must(effect.store.port == store_port_ && store_port_ != 0, "workers are told the open store");
    must(effect.round.restart_count == rounds_, "the restart count goes up by one");
    must(static_cast<int>(effect.round.round) == rounds_, "the round's number goes up by one");
    must(effect.round.restart_count <= max_restarts_, "there are no more restarts than allowed");
    must(effect.round.place.world_size == kWorkers, "the world has its size");
    must((rounds_ == 0) == effect.round.reason.empty(), "a restart has a reason");
    must(timer_ == 0, "no timer of the last round is left");
    ++rounds_;
    failed_first_ = -1;
    for (int rank = 0; rank < kWorkers; ++rank) {
      workers_[rank] = {.running = true, .stubborn = chance(2), .child_left = chance(5), .pid = ++last_pid_};
      on(agent::WorkerStarted{rank, last_pid_});
    }
    alive_ = groups_left_ = kWorkers;
    if (crashes_left_ == 0) {
      for (int rank = 0; rank < kWorkers; ++rank) plan(random(1, 900), Kind::kWorkerEnds, rank, workers_[rank].pid);
      return;
    }
    --crashes_left_;
    // The crash comes at the next full second. A few workers may have succeeded before.
    const std::int64_t until_crash = kSecondMs - now_ms_ % kSecondMs;
    plan(until_crash, Kind::kCrash, static_cast<int>(random(0, kWorkers - 1)), rounds_);
  }

  void perform(const agent::SignalWorkers& effect) {
    must(effect.signal == SIGTERM || effect.signal == SIGKILL, "workers are told to end");
    if (effect.signal == SIGKILL) ++killed_;
    for (int rank = 0; rank < kWorkers; ++rank) {
      Worker& worker = workers_[rank];
      const std::int64_t delay = effect.signal == SIGKILL ? 0 : random(0, kLongestEndMs);
      if (worker.running && (effect.signal == SIGKILL || !worker.stubborn)) {
        // Most workers die of the signal. Some handle it and exit with 0 or another code.
        const ExitStatus exit = effect.signal == SIGTERM && chance(20)
                                    ? ExitStatus{.code = static_cast<int>(random(0, 3))}
                                    : ExitStatus{.signal = effect.signal};
        plan(delay, Kind::kWorkerEnds, rank, worker.pid, exit);
      } else if (!worker.running && worker.child_left) {
        plan(delay, Kind::kGroupGone, rank, worker.pid);
      }
    }
  }

  void perform(const agent::AwaitAllGone&) {
    awaiting_gone_ = true;
    tell_if_all_gone();
  }

  void perform(const agent::StartTimer& effect) {
    timer_ = ++last_timer_;
    plan(effect.delay_ms, Kind::kTimer, 0, timer_);
  }

  void perform(const agent::StopTimer&) { timer_ = 0; }

  void perform(const agent::OpenLogs& effect) { on(agent::LogsOpened{effect.round}); }
  void perform(const agent::PrepareLogs&) {}
  void perform(const agent::GiveUpLogs&) { must(false, "the log directory does not hang here"); }

  void perform(const agent::Warn& effect) {
    must(effect.text.find(format("(restart {} of {})", rounds_, max_restarts_)) != std::string::npos,
         "the only warning is that of a restart, with its number");
    must(effect.text.find(format("rank {} ", failed_first_)) != std::string::npos,
         "a restart's warning names who failed first");
  }

  void perform(const agent::Finish& effect) {
    must(!job_result_ && groups_left_ == 0 && store_port_ == 0, "the end comes once, when all is gone");
    job_result_ = effect.job_result;
  }

  void perform(const agent::CheckNode&) { must(false, "nothing is checked here"); }
  void perform(const agent::NameSurvivors&) { must(false, "nobody survives SIGKILL here"); }
  void perform(const agent::FindBackground&) { on(agent::BackgroundFound{}); }
  void perform(const agent::LeaveBackground&) { must(false, "nothing is to live on here"); }
  void perform(const agent::AbandonWorkers&) { must(false, "nobody is abandoned here"); }
  void perform(const agent::GatherDetails&) { must(false, "there is nobody to tell"); }
  void perform(const agent::FindCrash&) { must(false, "nobody asks for it here"); }
  void perform(const agent::Paused&) { must(false, "nobody pauses here"); }
  void perform(const agent::CollectStacks&) { must(false, "nobody asks for stacks here"); }
  void perform(const agent::ReadEvidence&) { must(false, "hangs are not looked for here"); }
  void perform(const agent::StopEvidence&) { must(false, "hangs are not looked for here"); }
  void perform(const agent::AwaitDumps&) { must(false, "hangs are not looked for here"); }
  void perform(const agent::TellHang&) { must(false, "hangs are not looked for here"); }
  void perform(const agent::TellHangOver&) { must(false, "hangs are not looked for here"); }
  void perform(const agent::HearLoader&) { must(false, "no loader is tuned here"); }

  // --- Events ---

  void take_place(const Coming& event) {
    switch (event.kind) {
      case Kind::kCrash: return crash(event.rank);
      case Kind::kTimer:
        if (event.subject != timer_) return;
        timer_ = 0;
        return on(agent::TimerFired{});
      case Kind::kWorkerEnds: return end_worker(event.rank, event.subject, event.exit);
      case Kind::kGroupGone:
        if (workers_[event.rank].pid != event.subject || !workers_[event.rank].child_left) return;
        workers_[event.rank].child_left = false;
        --groups_left_;
        return tell_if_all_gone();
    }
  }

  // One worker fails, or a few in the same millisecond. A few may succeed before.
  void crash(int first) {
    for (int well = static_cast<int>(random(0, 9)) - 7; well > 0; --well) {
      const int rank = (first + static_cast<int>(random(1, kWorkers - 1))) % kWorkers;
      end_worker(rank, workers_[rank].pid, {});
    }
    const int together = chance(10) ? static_cast<int>(random(2, kMostFailTogether)) : 1;
    failed_first_ = first;
    for (int i = 0; i < together; ++i) {
      const int rank = (first + i) % kWorkers;
      const bool by_signal = chance(50);
      end_worker(rank, workers_[rank].pid,
                 by_signal ? ExitStatus{.signal = static_cast<int>(random(1, 15)), .core_dumped = chance(30)}
                           : ExitStatus{.code = static_cast<int>(random(1, kDoNotRequeue - 1))});
    }
  }

  void end_worker(int rank, std::int64_t pid, ExitStatus exit) {
    Worker& worker = workers_[rank];
    if (worker.pid != pid || !worker.running) return;  // it has ended already
    worker.running = false;
    --alive_;
    if (awaiting_gone_) worker.child_left = false;  // the signal went to the whole group
    if (!worker.child_left) --groups_left_;
    if (!exit.success()) ++failures_;
    on(agent::WorkerExited{rank, exit, now_ms_});
    tell_if_all_gone();
  }

  void tell_if_all_gone() {
    if (!awaiting_gone_ || groups_left_ > 0) return;
    awaiting_gone_ = false;
    on(agent::AllGone{});
  }

  std::mt19937_64 random_;
  int crashes_left_;
  int max_restarts_;
  transport::Service service_;
  agent::Agent agent_;
  std::deque<agent::AgentEvent> events_;
  bool deciding_ = false;
  std::priority_queue<Coming> coming_;
  std::int64_t now_ms_ = 0;
  std::uint64_t order_ = 0;

  Worker workers_[kWorkers];
  int alive_ = 0;        // workers
  int groups_left_ = 0;  // process groups that are not empty
  bool awaiting_gone_ = false;
  int store_port_ = 0;
  std::int64_t timer_ = 0;  // the one that runs, or 0
  std::int64_t last_timer_ = 0;
  std::int64_t last_pid_ = 1000;
  int rounds_ = 0;
  int failed_first_ = -1;
  int failures_ = 0;
  int killed_ = 0;  // how often SIGKILL was sent
  std::optional<protocol::JobResult> job_result_;
};

#ifdef __SANITIZE_ADDRESS__
constexpr bool kHeapCanBeCounted = false;  // the sanitizer's allocator has no mallinfo2
#else
constexpr bool kHeapCanBeCounted = true;
#endif

std::size_t heap_bytes() { return kHeapCanBeCounted ? mallinfo2().uordblks : 0; }

}  // namespace

TEST_CASE("a day with a crash every second is 86,400 rounds in order, and memory stays as it is") {
  constexpr int kHours = 24;
  constexpr int kCrashes = kHours * kSecondsPerHour;
  constexpr std::size_t kMayGrow = 4096;  // bytes; events that wait differ a little from hour to hour
  Job job(kCrashes - 1, kCrashes);
  std::vector<std::size_t> hourly;
  hourly.reserve(kHours);
  for (int hour = 1; hour <= kHours; ++hour) {
    // Shortly before a crash the round runs, and no other event is pending.
    job.run_until(std::int64_t{hour} * kSecondsPerHour * kSecondMs - kBeforeCrashMs);
    CHECK(job.rounds() == hour * kSecondsPerHour);
    CHECK(job.alive() == kWorkers);
    CHECK(job.store_is_open());
    hourly.push_back(heap_bytes());
  }
  job.run_until(std::int64_t{kCrashes + 2} * kSecondMs);

  REQUIRE(job.ended());
  CHECK(job.rounds() == kCrashes);
  CHECK(job.job_result().outcome == protocol::JobResult::Outcome::kFailed);
  CHECK(job.job_result().restarts_used == kCrashes - 1);
  CHECK(!job.job_result().failures.empty());
  CHECK(!job.job_result().failures.front().stopped_by_us);
  CHECK(job.killed() > kCrashes / 20);
  std::printf("%d rounds, %d workers failed or were stopped, %d times by SIGKILL; seed %llu\n", job.rounds(),
              job.failures(), job.killed(), static_cast<unsigned long long>(seed_of_this_run()));
  if (!kHeapCanBeCounted) {
    std::printf("heap not counted: the address sanitizer has an allocator of its own\n");
    return;
  }
  std::printf("heap in use after each hour, bytes:");
  for (const std::size_t bytes : hourly) std::printf(" %zu", bytes);
  std::printf("\n");
  CHECK(*std::max_element(hourly.begin(), hourly.end()) <= hourly.front() + kMayGrow);
}

TEST_CASE("a job whose workers end well after as many crashes as it has restarts succeeds") {
  constexpr int kCrashes = kSecondsPerHour;
  Job job(kCrashes, kCrashes);
  job.run_until(std::int64_t{kCrashes + 2} * kSecondMs);
  REQUIRE(job.ended());
  CHECK(job.rounds() == kCrashes + 1);
  CHECK(job.job_result().outcome == protocol::JobResult::Outcome::kSucceeded);
  CHECK(job.job_result().restarts_used == kCrashes);
  CHECK(job.job_result().failures.empty());
}
