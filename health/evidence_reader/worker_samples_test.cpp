#include "health/evidence_reader/worker_samples.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <string>
#include <thread>

namespace elastic::evidence {
namespace {

// A process that waits until it is killed.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    for (; pid_ == 0;) pause();
    while (!sleeps()) sched_yield();
  }
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  pid_t pid() const { return pid_; }
  void stop() const {
    kill(pid_, SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
  }

 private:
  bool sleeps() const {
    std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
    std::string line;
    return std::getline(stat, line) && line.find(") S ") != std::string::npos;
  }

  pid_t pid_;
};

}  // namespace

TEST_CASE("workers are looked at twice: one that sleeps, one that is stopped, one that is gone") {
  Sleeper sleeping, stopped;
  stopped.stop();
  hang::EvidenceTask task;
  task.workers = {{.rank = 4, .local_rank = 0, .pid = sleeping.pid(), .children = {stopped.pid()}},
                  {.rank = 5, .local_rank = 1, .pid = stopped.pid()},
                  {.rank = 6, .local_rank = 2, .pid = 0x40000001}};
  const hang::EvidenceAnswer answer = look_at_processes(task);
  REQUIRE(answer.facts.ranks.size() == 3);
  const hang::RankFacts& first = answer.facts.ranks[0];
  CHECK(first.rank == 4);
  CHECK(first.pid == sleeping.pid());
  CHECK(first.state == hang::ThreadState::kSleeps);
  CHECK(first.state_ms >= kBetweenSamplesMs);
  CHECK(first.cpu_percent == 0);
  CHECK(answer.facts.ranks[1].state == hang::ThreadState::kStopped);
  CHECK(answer.facts.ranks[2].state == hang::ThreadState::kGone);
  CHECK(!answer.facts.storage_hangs);
  CHECK(answer.lines.size() == 3);
  CHECK(answer.lines[1].find("stopped") != std::string::npos);
}

TEST_CASE(
    "a worker of PyTorch's NCCL engine has the thread that looks for the store's key, or what it has started has") {
  const Sleeper sleeping;
  hang::EvidenceTask task;
  task.workers = {{.rank = 0, .pid = sleeping.pid(), .children = {getpid()}},
                  {.rank = 1, .pid = sleeping.pid()},
                  {.rank = 2, .pid = getpid()}};
  std::promise<void> named, over;
  std::thread engine([&] {
    prctl(PR_SET_NAME, "pt_nccl_heartbt");
    named.set_value();
    over.get_future().wait();
  });
  named.get_future().wait();
  const hang::EvidenceAnswer with = look_at_processes(task);
  over.set_value();
  engine.join();
  REQUIRE(with.facts.ranks.size() == 3);
  for (const hang::RankFacts& rank : with.facts.ranks) CHECK(rank.reads_dump_key == (rank.rank != 1));
}

TEST_CASE("a sample of a process has its state, its start and its bytes") {
  const Sleeper sleeper;
  const ProcessSample sample = sample_of(sleeper.pid());
  CHECK(sample.started_ticks > 0);
  CHECK(sample.own_pid.has_value());
  CHECK(sample.bytes.has_value());
  CHECK(sample_of(0x40000001).state == 0);
}

}  // namespace elastic::evidence
