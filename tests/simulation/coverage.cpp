#include "tests/simulation/coverage.h"

#include <string_view>

#include "src/base/text.h"

namespace elastic::simulation {

namespace {

constexpr std::array<std::string_view, kPlaces> kPlaceNames = {
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
                                                                  "wall clock jumps",
                                                                  "flood of joins",
                                                                  "SIGTERM",
                                                                  "stranger connects",
                                                                  "garbage in session",
                                                                  "late joiner",
                                                                  "other terms",
                                                                  "rank claimed twice"};

// The cells that stay empty, each with the reason. All others must have counts.
struct Reason {
  FaultKind kind;
  Place place;
  std::string_view why;
};
constexpr Reason kReasons[] = {
    {FaultKind::kPauseCoordinator, Place::kDown, "it is dead"},
    {FaultKind::kCrashCoordinator, Place::kDown, "it is dead"},
    {FaultKind::kStranger, Place::kDown, "nobody accepts it"},
    {FaultKind::kReset, Place::kDown, "a dead coordinator has no connections"},
    {FaultKind::kGarbage, Place::kDown, "a dead coordinator has no connections"},
    // In these states only workers of a node that was cut off are left.
    {FaultKind::kCrashWorker, Place::kNoJob, "workers run in a job"},
    {FaultKind::kCrashWorker, Place::kForming, "no worker runs before the first round"},
    {FaultKind::kCrashWorker, Place::kChecking, "the workers of a round run after its check"},
    {FaultKind::kCrashWorker, Place::kPreparing, "the workers of a round run when it is prepared"},
    {FaultKind::kCrashWorker, Place::kEnding, "a job ends when its workers have ended"},
};

// Combinations of faults that are never injected, although each of them is. faults.cpp avoids them, and Node throws if
// they occur.
constexpr std::string_view kLeftOut =
    "left out: an agent that is stopped while its guardian is dead, or the other way round: nobody is left who could "
    "end the "
    "workers when the lease is over";

bool has_reason(FaultKind kind, Place place) {
  for (const Reason& reason : kReasons) {
    if (reason.kind == kind && reason.place == place) return true;
  }
  return false;
}

}  // namespace

std::string name(Place place) { return std::string(kPlaceNames.at(static_cast<std::size_t>(place))); }
std::string name(FaultKind kind) { return std::string(kKindNames.at(static_cast<std::size_t>(kind))); }

bool is_transition(Place place) { return place != Place::kDown && place != Place::kNoJob && place != Place::kRunning; }

void Coverage::strikes(FaultKind kind, Place place, const std::string& job, protocol::Incarnation incarnation,
                       std::int64_t round) {
  ++faults_;
  ++counts_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(place)];
  if (is_transition(place) && marked_.emplace(job, incarnation, round).second) ++faulty_rounds_;
}

void Coverage::world_over(int rounds) {
  ++worlds_;
  rounds_ += static_cast<std::uint64_t>(rounds);
  marked_.clear();
}

std::string Coverage::table() const {
  std::string text = format("{:<22}", "");
  for (const std::string_view place : kPlaceNames) text += format("{:>11}", place);
  text += '\n';
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    text += format("{:<22}", kKindNames[kind]);
    for (std::size_t place = 0; place < kPlaces; ++place) {
      const bool explained =
          counts_[kind][place] == 0 && has_reason(static_cast<FaultKind>(kind), static_cast<Place>(place));
      text += explained ? format("{:>11}", "-") : format("{:>11}", counts_[kind][place]);
    }
    text += '\n';
  }
  text += "-: ";
  for (const Reason& reason : kReasons)
    text +=
        format("{}{} while {}: {}", &reason == kReasons ? "" : "; ", name(reason.kind), name(reason.place), reason.why);
  text += format("\n{}", kLeftOut);
  text += format("\n{} worlds, {} rounds, {} faults, {} faulty rounds\n", worlds_, rounds_, faults_, faulty_rounds_);
  return text;
}

std::string Coverage::unexplained() const {
  std::string text;
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    for (std::size_t place = 0; place < kPlaces; ++place) {
      const auto fault = static_cast<FaultKind>(kind);
      const auto where = static_cast<Place>(place);
      if (counts_[kind][place] > 0 || has_reason(fault, where)) continue;
      text += format("{}{} while {}", text.empty() ? "" : "; ", name(fault), name(where));
    }
  }
  return text;
}

std::vector<std::uint64_t> Coverage::numbers() const {
  std::vector<std::uint64_t> numbers = {faults_, faulty_rounds_, rounds_, worlds_};
  for (const auto& row : counts_) numbers.insert(numbers.end(), row.begin(), row.end());
  return numbers;
}

void Coverage::add(const std::vector<std::uint64_t>& numbers) {
  if (numbers.size() != 4 + kFaultKinds * kPlaces) return;
  faults_ += numbers[0];
  faulty_rounds_ += numbers[1];
  rounds_ += numbers[2];
  worlds_ += numbers[3];
  for (std::size_t i = 0; i < kFaultKinds * kPlaces; ++i) counts_[i / kPlaces][i % kPlaces] += numbers[4 + i];
}

void Coverage::add(const Coverage& other) { add(other.numbers()); }

}  // namespace elastic::simulation
