#include "tests/simulation/coverage.h"

#include <string_view>

#include "src/base/text.h"

namespace elastic::simulation {

namespace {

constexpr std::array<std::string_view, kJobStates> kJobStateNames = {
    "down", "no job", "forming", "again", "rebuilding", "checking", "preparing", "running", "stopping", "ending"};
constexpr std::array<std::string_view, kFaultKinds> kKindNames = {"delays",
                                                                  "reset connection",
                                                                  "cut to coordinator",
                                                                  "cut from coordinator",
                                                                  "partition",
                                                                  "agent stopped",
                                                                  "host frozen",
                                                                  "coordinator stopped",
                                                                  "agent dies",
                                                                  "worker dies",
                                                                  "host dies",
                                                                  "coordinator dies",
                                                                  "guardian dies",
                                                                  "agent stopped, guardian dead",
                                                                  "wall clock jumps",
                                                                  "flood of joins",
                                                                  "SIGTERM",
                                                                  "stranger connects",
                                                                  "garbage in session",
                                                                  "late joiner",
                                                                  "other terms",
                                                                  "rank claimed twice",
                                                                  "file: no answer",
                                                                  "file: slow",
                                                                  "file: no writing",
                                                                  "operator's order",
                                                                  "stacks are asked for"};

// The cells that stay empty, each with the reason. All others must have counts.
struct Reason {
  FaultKind kind;
  JobState state;
  std::string_view why;
};
constexpr Reason kReasons[] = {
    {FaultKind::kPauseCoordinator, JobState::kDown, "it is dead"},
    {FaultKind::kCrashCoordinator, JobState::kDown, "it is dead"},
    {FaultKind::kStranger, JobState::kDown, "nobody accepts it"},
    {FaultKind::kOrder, JobState::kDown, "nobody accepts it"},
    {FaultKind::kStacks, JobState::kDown, "nobody accepts it"},
    {FaultKind::kReset, JobState::kDown, "a dead coordinator has no connections"},
    {FaultKind::kGarbage, JobState::kDown, "a dead coordinator has no connections"},
    {FaultKind::kRegisterSilent, JobState::kNoJob, "by a file nobody serves before a job begins"},
    {FaultKind::kRegisterSlow, JobState::kNoJob, "by a file nobody serves before a job begins"},
    {FaultKind::kRegisterRefuses, JobState::kNoJob, "by a file nobody serves before a job begins"},
    // In these states only workers of a node that was cut off are left.
    {FaultKind::kCrashWorker, JobState::kNoJob, "workers run in a job"},
    {FaultKind::kCrashWorker, JobState::kForming, "no worker runs before the first round"},
    {FaultKind::kCrashWorker, JobState::kChecking, "the workers of a round run after its check"},
    {FaultKind::kCrashWorker, JobState::kPreparing, "the workers of a round run when it is prepared"},
    {FaultKind::kCrashWorker, JobState::kEnding, "a job ends when its workers have ended"},
};

bool has_reason(FaultKind kind, JobState state) {
  for (const Reason& reason : kReasons) {
    if (reason.kind == kind && reason.state == state) return true;
  }
  return false;
}

}  // namespace

std::string name(JobState state) { return std::string(kJobStateNames.at(static_cast<std::size_t>(state))); }
std::string name(FaultKind kind) { return std::string(kKindNames.at(static_cast<std::size_t>(kind))); }

bool is_transition(JobState state) {
  return state != JobState::kDown && state != JobState::kNoJob && state != JobState::kRunning;
}

void Coverage::strikes(FaultKind kind, JobState state, const std::string& job, protocol::Incarnation incarnation,
                       std::int64_t round) {
  ++faults_;
  ++counts_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(state)];
  if (is_transition(state) && marked_.emplace(job, incarnation, round).second) ++faulty_rounds_;
}

void Coverage::seed_is_over(int rounds, const HangCounts& hangs) {
  ++seeds_;
  for (std::size_t i = 0; i < HangCounts::kNumbers; ++i) hangs_.numbers[i] += hangs.numbers[i];
  rounds_ += static_cast<std::uint64_t>(rounds);
  marked_.clear();
}

std::string Coverage::table() const {
  std::string text = format("{:<30}", "");
  for (const std::string_view state : kJobStateNames) text += format("{:>11}", state);
  text += '\n';
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    text += format("{:<30}", kKindNames[kind]);
    for (std::size_t state = 0; state < kJobStates; ++state) {
      const bool explained =
          counts_[kind][state] == 0 && has_reason(static_cast<FaultKind>(kind), static_cast<JobState>(state));
      text += explained ? format("{:>11}", "-") : format("{:>11}", counts_[kind][state]);
    }
    text += '\n';
  }
  text += "-: ";
  for (const Reason& reason : kReasons)
    text +=
        format("{}{} while {}: {}", &reason == kReasons ? "" : "; ", name(reason.kind), name(reason.state), reason.why);
  text += format("\n{} seeds, {} rounds, {} faults, {} faulty rounds\n", seeds_, rounds_, faults_, faulty_rounds_);
  HangCounts hangs = hangs_;
  text += format(
      "{} hangs, {} collections of evidence, {} verdicts, {} that name somebody, {} that had to; {} hangs had to be "
      "told by some time, and {} that they were over\n",
      hangs.begun(), hangs.collections(), hangs.verdicts(), hangs.named(), hangs.known(), hangs.due(), hangs.over());
  return text;
}

std::string Coverage::unexplained() const {
  std::string text;
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    for (std::size_t state = 0; state < kJobStates; ++state) {
      const auto fault = static_cast<FaultKind>(kind);
      const auto where = static_cast<JobState>(state);
      if (counts_[kind][state] > 0 || has_reason(fault, where)) continue;
      text += format("{}{} while {}", text.empty() ? "" : "; ", name(fault), name(where));
    }
  }
  return text;
}

std::vector<std::uint64_t> Coverage::numbers() const {
  std::vector<std::uint64_t> numbers = {faults_, faulty_rounds_, rounds_, seeds_};
  numbers.insert(numbers.end(), hangs_.numbers.begin(), hangs_.numbers.end());
  for (const auto& row : counts_) numbers.insert(numbers.end(), row.begin(), row.end());
  return numbers;
}

void Coverage::add(const std::vector<std::uint64_t>& numbers) {
  constexpr std::size_t kFirst = 4 + HangCounts::kNumbers;
  if (numbers.size() != kFirst + kFaultKinds * kJobStates) return;
  faults_ += numbers[0];
  faulty_rounds_ += numbers[1];
  rounds_ += numbers[2];
  seeds_ += numbers[3];
  for (std::size_t i = 0; i < HangCounts::kNumbers; ++i) hangs_.numbers[i] += numbers[4 + i];
  for (std::size_t i = 0; i < kFaultKinds * kJobStates; ++i)
    counts_[i / kJobStates][i % kJobStates] += numbers[kFirst + i];
}

void Coverage::add(const Coverage& other) { add(other.numbers()); }

}  // namespace elastic::simulation
