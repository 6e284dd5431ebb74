#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "rendezvous/protocol/messages.h"

namespace elastic::simulation {

// The state of a job when a fault strikes: the states of its coordinator, with forming and preparing split by what the
// coordinator waits for.
enum class JobState : std::uint8_t {
  kDown,     // its coordinator is dead
  kNoJob,    // the coordinator does not know the job yet, or does not know it any more
  kForming,  // the first round
  kFormingAgain,
  kRecovery,
  kChecking,  // a phase of the check before training
  kPreparing,
  kRunning,
  kStopping,
  kEnding,
};
inline constexpr std::size_t kJobStates = 10;
std::string name(JobState state);
// A round is beginning or ending: a fault that strikes now makes it a faulty round.
bool is_transition(JobState state);

enum class FaultKind : std::uint8_t {
  kDelay,
  kReset,
  kCutToServer,
  kCutFromServer,
  kPartition,
  kPauseAgent,
  kFreezeHost,
  kPauseCoordinator,
  kCrashAgent,
  kCrashWorker,
  kCrashHost,
  kCrashCoordinator,
  kCrashGuardian,
  kUnguarded,  // the agent is stopped, and its guardian dies
  kClockJump,
  kFlood,
  kSignal,
  kStranger,
  kGarbage,
  kLateJoiner,
  kOtherTerms,
  kRankClaimedTwice,
  // Of the file of discovery: it does not answer some nodes, it takes long, it refuses to be written.
  kRegisterSilent,
  kRegisterSlow,
  kRegisterRefuses,
  kOrder,   // an operator drains the node, or stops its job
  kStacks,  // somebody asks what the workers of the node's job are doing
};
inline constexpr std::size_t kFaultKinds = 27;
// The kinds of which the plan of every seed draws: all but orders and questions, which streams of their own add.
inline constexpr std::size_t kDrawnFaults = kFaultKinds - 2;
std::string name(FaultKind kind);

// What became of rounds that hang.
struct HangCounts {
  static constexpr std::size_t kNumbers = 7;
  std::array<std::uint64_t, kNumbers> numbers{};
  std::uint64_t& begun() { return numbers[0]; }
  std::uint64_t& collections() { return numbers[1]; }  // of evidence, each of one coordinator
  std::uint64_t& verdicts() { return numbers[2]; }     // told to however many nodes
  std::uint64_t& named() { return numbers[3]; }        // of these: that name somebody
  std::uint64_t& known() { return numbers[4]; }  // of these: all evidence was there, and had to name the one at fault
  std::uint64_t& due() { return numbers[5]; }    // hangs that had to be told by some time, when no fault came any more
  std::uint64_t& over() { return numbers[6]; }   // rounds whose nodes had to have heard that it is over
};

// Counts which faults struck in which states.
class Coverage {
 public:
  void strikes(FaultKind kind, JobState state, const std::string& job, protocol::Incarnation incarnation,
               std::int64_t round);
  void seed_is_over(int rounds, const HangCounts& hangs = {});
  void add(const Coverage& other);

  std::uint64_t faulty_rounds() const { return faulty_rounds_; }
  std::uint64_t seeds() const { return seeds_; }
  std::string table() const;
  // The cells without a count for which no reason is known, as text; empty if there are none.
  std::string unexplained() const;

  // All counts as numbers, to be sent through a pipe.
  std::vector<std::uint64_t> numbers() const;
  void add(const std::vector<std::uint64_t>& numbers);

 private:
  std::array<std::array<std::uint64_t, kJobStates>, kFaultKinds> counts_{};
  std::uint64_t faults_ = 0;
  std::uint64_t faulty_rounds_ = 0;
  std::uint64_t rounds_ = 0;
  std::uint64_t seeds_ = 0;
  HangCounts hangs_;
  std::set<std::tuple<std::string, protocol::Incarnation, std::int64_t>> marked_;  // faulty rounds of this seed
};

}  // namespace elastic::simulation
