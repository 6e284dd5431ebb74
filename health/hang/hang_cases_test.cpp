#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "health/hang/hang_judge.h"
#include "health/hang/hang_test_support.h"
#include "health/hang/hang_watch.h"

// The ways in which jobs hang, from the facts that nodes have of them to the verdict. Three ranks on three nodes, with
// --hang-timeout=3s, unless it says otherwise.
namespace elastic::hang {
namespace {

struct Case {
  HungJob job = HungJob(3, 1);
  HangWatch watch = HangWatch({.timeout_ms = 3'000});
  std::int64_t now_ms = 0;
  std::vector<HangEffect> told = {};

  Case() {
    tell(RoundBegan{});
    for (int step = 0; step < 10; ++step) beat(200);
  }
  void tell(const HangEvent& event) {
    for (const HangEffect& effect : watch.handle(event, now_ms)) told.push_back(effect);
  }
  void wait(std::int64_t ms) {
    for (const std::int64_t until = now_ms + ms; now_ms < until;) {
      now_ms = std::min(until, std::max(now_ms + 1, watch.next_ms().value_or(until)));
      tell(Tick{});
    }
  }
  void beat(std::int64_t after_ms) {
    wait(after_ms);
    tell(Beat{});
  }
  // From the last progress to the verdict; nodes answer at once.
  HangVerdict verdict() {
    wait(30'000);
    tell(Sampled{Sampled::Is::kSame});
    REQUIRE(watch.state() == HangState::kCollecting);
    tell(Collected{});
    return job.judged();
  }
};

void check(const HangVerdict& verdict, int rule, const std::string& who, Fault fault = Fault::kSoft) {
  CHECK(verdict.rule == rule);
  CHECK(blamed(verdict) == who);
  CHECK(verdict.fault == fault);
}

}  // namespace

TEST_CASE("H1: a rank that sleeps in load_batch while two wait in all_reduce") {
  Case it;
  it.job.put(1, stack_in("load_batch", "data.py", 88)).wchan = "hrtimer_nanosleep";
  const HangVerdict verdict = it.verdict();
  check(verdict, 8, "1");
  CHECK(verdict.culprits[0].why.find("load_batch data.py:88") != std::string::npos);
  it.job.record(40);
  it.job.let_lag(1);
  check(it.job.judged(), 7, "1");
}

TEST_CASE("H2: a rank that waits for a lock that it holds, in the same kernel function as those that wait for it") {
  Case it;
  it.job.put(1, stack_in("update", "train.py", 61));
  CHECK(it.job.rank(1).wchan == it.job.rank(0).wchan);
  check(it.verdict(), 8, "1");
}

TEST_CASE("H3: a rank that holds the GIL in C, whose stack is read from outside") {
  Case it;
  it.job.put(1, stack_in("hold_the_gil", "train.py", 33)).wchan = "hrtimer_nanosleep";
  check(it.verdict(), 8, "1");
}

TEST_CASE("H4: a rank that spins, in Python at two lines or in C at one") {
  Case it;
  it.job.put(1, stack_in("spin", "train.py", 12));
  it.job.put(1, stack_in("spin", "train.py", 13)).stack_then = std::uint16_t{1};
  it.job.rank(1).state = ThreadState::kRuns;
  it.job.rank(1).wchan = "";
  it.job.rank(1).cpu_percent = 100;
  check(it.verdict(), 8, "1");
}

TEST_CASE("H5: a rank that was stopped is found after ten seconds, and by its state though its stack is read") {
  Case it;
  it.watch = HangWatch({});
  it.tell(RoundBegan{});
  it.tell(FactSeen{Fact::kStopped});
  it.job.put(1, stack_in("train_step", "train.py", 140)).state = ThreadState::kStopped;
  it.wait(10'000);
  CHECK(it.watch.state() == HangState::kSuspect);
  check(it.verdict(), 4, "1");
}

TEST_CASE("H6: a rank in state D accuses its node") {
  Case it;
  it.job.put(1, stack_in("vfork_and_sleep", "train.py", 20)).state = ThreadState::kDisk;
  it.job.rank(1).wchan = "kernel_clone";
  check(it.verdict(), 3, "gpu-1", Fault::kHard);
}

TEST_CASE("H7: a rank that never calls init_process_group, without any stack") {
  Case it;
  it.watch = HangWatch({.timeout_ms = 3'000});
  it.tell(RoundBegan{});
  it.tell(FactSeen{Fact::kInitKey});
  it.job.forget_stacks();
  it.job.facts.nodes[0].store = StoreFacts{.absent = RankRuns::of({1}), .waiting = RankRuns::of({0, 2})};
  check(it.verdict(), 5, "1");
}

TEST_CASE("H8: two ranks in all_reduce and two in broadcast") {
  Case it;
  it.job = HungJob(2, 2);
  it.job.put(1, in_torch("broadcast"));
  it.job.put(3, in_torch("broadcast"));
  check(it.verdict(), 6, "nobody", Fault::kScript);
}

TEST_CASE("H9: a rank whose data loader sleeps is named with the loader's stack") {
  Case it;
  it.job.put(1, stack_in("__getitem__", "data.py", 17));
  RankFacts& rank = it.job.put(1, stack_in("get", "/usr/lib/python3.11/multiprocessing/queues.py", 103));
  rank.child_stack = std::uint16_t{1};
  const HangVerdict verdict = it.verdict();
  check(verdict, 8, "1");
  CHECK(verdict.culprits[0].why.find("a child of it in __getitem__ data.py:17") != std::string::npos);
}

TEST_CASE("H10: a slow checkpoint of all ranks raises no alarm while bytes move") {
  Case it;
  for (int second = 0; second < 600; ++second) {
    it.wait(1'000);
    it.tell(DiskMoves{});
  }
  it.beat(1'000);
  CHECK(it.told.empty());
}

TEST_CASE("H11: rank 0 saves to a pipe that nobody reads, and all others wait in a barrier") {
  Case it;
  it.job = HungJob(3, 1, in_torch("barrier"));
  it.job.put(0, stack_in("save_checkpoint", "train.py", 170)).wchan = "pipe_write";
  const HangVerdict first = it.verdict();
  check(first, 2, "nobody", Fault::kNone);
  it.tell(Judged{.is_storage = first.is_storage()});
  CHECK(it.watch.state() == HangState::kArmed);
  check(it.verdict(), 2, "nobody", Fault::kNone);
}

TEST_CASE("H12: a first step of ten times the limit raises no alarm, and it is told once that nothing is armed") {
  Case it;
  it.watch = HangWatch({.timeout_ms = 3'000});
  it.tell(RoundBegan{});
  it.wait(30'000);
  it.beat(0);
  CHECK(it.told == std::vector<HangEffect>{TellNotArmed{}});
}

TEST_CASE("H13: with a learned limit an evaluation of four steps is no hang, and a real one later is found") {
  Case it;
  it.watch = HangWatch({.floor_ms = 500});
  it.tell(RoundBegan{});
  for (int step = 0; step < 10; ++step) it.beat(200);
  it.beat(800);
  for (int step = 0; step < 10; ++step) it.beat(200);
  CHECK(it.told.empty());
  it.job.put(2, stack_in("load_batch", "data.py", 88));
  check(it.verdict(), 8, "2");
}

TEST_CASE("H14: a step of the limit and one second withdraws the alarm when it is over") {
  Case it;
  it.watch = HangWatch({.timeout_ms = 3'000, .between_samples_ms = 500});
  it.tell(RoundBegan{});
  it.beat(200);
  it.wait(3'500);
  it.tell(Sampled{Sampled::Is::kSame});
  CHECK(it.watch.state() == HangState::kCollecting);
  it.beat(500);
  CHECK(it.watch.state() == HangState::kArmed);
  CHECK(it.told.back() == HangEffect(Withdraw{4'000}));
}

TEST_CASE("H15: of two nodes the one that is cut off is at fault, whatever the ranks of the other one do") {
  HungJob job(2, 2);
  job.lose_evidence(1);
  job.facts.nodes[1].lost = "it has sent nothing for 10 s";
  check(job.judged(), 1, "gpu-1", Fault::kHard);
}

TEST_CASE("H18: each section that a script names has its own limit") {
  Case it;
  it.watch = HangWatch({.floor_ms = 100});
  it.tell(RoundBegan{});
  for (int round = 0; round < 2; ++round) {
    it.tell(Beat{Phase::kTrain});
    it.wait(100);
    it.tell(Beat{Phase::kCheckpoint});
    it.wait(3'000);
  }
  it.tell(Beat{Phase::kTrain});
  CHECK(it.watch.limit() == Limit{500, LimitFrom::kLearned});
  it.tell(Beat{Phase::kCheckpoint});
  CHECK(it.watch.limit() == Limit{15'000, LimitFrom::kLearned});
}

TEST_CASE("H23: the rank that sets /exception_dump was the first to time out, and is not the culprit for that") {
  Case it;
  it.watch = HangWatch({});
  it.tell(RoundBegan{});
  it.tell(Beat{});
  it.tell(FactSeen{Fact::kDumpKey});  // by rank 0, which waits
  it.wait(10'000);
  CHECK(it.watch.state() == HangState::kSuspect);
  it.job.put(2, stack_in("load_batch", "data.py", 88));
  check(it.verdict(), 8, "2");
}

}  // namespace elastic::hang
