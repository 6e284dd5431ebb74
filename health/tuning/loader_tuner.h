#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "health/tuning/climb.h"
#include "health/tuning/loader_word.h"
#include "health/tuning/paral_config.h"

namespace elastic::tuning {

// What the other nodes of a round have told the one of group rank 0 of themselves.
class OtherNodes {
 public:
  void begin_round(int count);
  // A state that makes no sense counts as not told.
  void heard(int node_rank, const NodeState& state);
  // The first node of which nothing was heard in this round; nothing: all have told.
  std::optional<int> silent() const;
  // The first node where no worker has read these values, or later ones; nothing: there is none.
  std::optional<int> not_read(std::int64_t version) const;
  // The least of all nodes, this one's included. Memory is nothing where it is not known of each.
  std::optional<std::uint64_t> least_free(std::optional<std::uint64_t> own) const;
  int least_cpus(int own) const;
  // From now on memory is taken.
  void mark();
  // How much that is by now on the node that has lost most.
  std::uint64_t most_taken() const;

 private:
  struct Node {
    std::optional<NodeState> state = {};
    std::optional<std::int64_t> marked_bytes = {};
  };
  std::vector<Node> nodes_;  // by node rank, from 1 on
};

// Data loaders wait for storage most of the time, so there may be more of them than CPUs: a rank gets at most this many
// for each CPU that it may use.
inline constexpr std::int64_t kWorkersPerCpu = 4;
// A first change needs this much free memory, as it is not known yet what it takes; a later one needs this many times
// what the last change of that value took.
inline constexpr std::uint64_t kLeastFreeBytes = 1024ULL * 1024 * 1024;
inline constexpr std::uint64_t kTimesTaken = 2;
// After so long without steps, without a loader's values, or without a window of the speed, one line says that nothing
// is changed; and so it does where no worker has read a change for so long.
inline constexpr std::int64_t kNothingMs = 300'000;
// After so many looks in which it is none the file is written again: a loader that writes it is done by then.
inline constexpr int kUnreadableLooks = 3;
// | values that are written again after workers have overwritten them | {kMostRewrites} in a round | the search is
// over |
inline constexpr int kMostRewrites = 8;

enum class Value : std::uint8_t { kWorkers, kBatch };
inline constexpr std::array kValues = {Value::kWorkers, Value::kBatch};
constexpr auto names_of(Value) { return std::array{"num_workers", "batch_size"}; }
constexpr const char* name_of(Value value) { return names_of(value)[static_cast<std::size_t>(value)]; }

// One event of auto-tunning (docs/observing.md).
struct Note {
  enum class What : std::uint8_t { kTried, kKept, kTakenBack, kEnded, kNothing };
  What what = What::kNothing;
  std::optional<Value> value = {};
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::optional<double> speed_before = {};  // steps a second, of batch_size samples a second
  std::optional<double> speed_after = {};
  std::string text = {};  // for people
};
constexpr auto names_of(Note::What) { return std::array{"tried", "kept", "taken_back", "ended", "nothing_changed"}; }
constexpr const char* name_of(Note::What what) { return names_of(what)[static_cast<std::size_t>(what)]; }

// What is found by one look at the node.
struct Look {
  std::int64_t now_ms = 0;
  std::optional<ParalConfig> file = {};  // nothing: it cannot be read at present
  bool was_read = false;                 // a worker has read the file since it was last written
  std::optional<StepSeen> step = {};
  std::optional<std::uint64_t> free_bytes = {};  // of the node's memory
};

// Looks for the values of a data loader with which a job makes the most steps, or samples, a second, as this node's
// workers make them: a job is as fast as its slowest node. It measures at one setting, changes one value, waits until a
// worker of each node has read it, measures again, and keeps the change if the speed has risen by more than its noise,
// else takes it back. First num_workers, then batch_size, each only if a loader has said its own in the file. Never
// goes below what the loader began with.
class LoaderTuner {
 public:
  struct Effects {
    std::optional<Order> write = {};
    std::vector<Note> notes = {};
  };
  // `cpus`: that a rank may use.
  explicit LoaderTuner(int cpus) : cpus_(cpus) {}

  // The search begins with what another node has found. Before a loader has said its own, and once.
  void inherit(const ChosenValues& values);
  // A round forms with so many other nodes; without it there are none.
  void round_forms(int others) { others_.begin_round(others); }
  // New workers are about to be started. `may_restart`: another round would follow if one of them fails. The order is
  // for the file that they will find; without one, and before anything was changed, that is first_config().
  Effects begin_round(bool may_restart, std::int64_t now_ms);
  // Another node of the round tells of itself.
  void heard(int node_rank, const NodeState& state) { others_.heard(node_rank, state); }
  // The round is over. `rank_failed`: one of its ranks, by itself; `memory`: the rule by which it died of memory, or
  // empty.
  Effects end_round(bool rank_failed, std::string_view memory);
  Effects weigh_look(const Look& look);
  // A value is in the file that no loader began with.
  bool has_changed() const;
  // A loader has said what it began with, or another node has.
  bool has_begun() const;
  // What the other nodes' files are to say.
  ChosenValues values() const;

  void check_invariants() const;

 private:
  // Waiting: for steps and a loader's values. Base: the speed at the values that hold is measured.
  enum class Phase : std::uint8_t { kWaiting, kBase, kTrial, kOver };
  struct Trial {
    Value value = Value::kWorkers;
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::optional<std::uint64_t> free_bytes = {};  // before it
  };

  Climb& climb(Value value) { return climbs_[static_cast<std::size_t>(value)]; }
  const Climb& climb(Value value) const { return climbs_[static_cast<std::size_t>(value)]; }
  std::optional<std::int64_t> wanted(Value value) const;
  // What no loader has said yet is what it began with.
  bool is_as_wanted(const ParalConfig& file) const;
  // `speed` is of steps; what is compared for a batch size is samples.
  Speed compared(Value value, const Speed& speed, std::int64_t batch) const;

  std::int64_t limit_of(Value value, std::int64_t kept) const;
  std::string silence() const;
  void begin_climbs(const std::optional<ParalConfig>& file, std::int64_t now_ms);
  void take_file(const std::optional<ParalConfig>& file, Effects& out);
  void wait(const Look& look, Effects& out);
  void await_reader(const Look& look, Effects& out);
  void measure(const Look& look, Effects& out);
  void decide(const Look& look, const Speed& speed, Effects& out);
  void try_next(const Look& look, Effects& out);
  // Why the next value of this climb is not to be tried; empty: it may be.
  std::string objection(Value value, const Look& look) const;
  void write(Effects& out);
  void write_now(Effects& out, std::int64_t now_ms);
  void take_back(std::string_view because, std::optional<double> speed, Effects& out);
  void nothing(std::string text, Effects& out);

  int cpus_;
  Phase phase_ = Phase::kWaiting;
  bool is_running_ = false;
  bool may_restart_ = false;
  std::array<Climb, kValues.size()> climbs_;
  std::array<std::uint64_t, kValues.size()> taken_bytes_{};  // of memory, by the last change that was measured
  std::vector<Value> kept_;                                  // one after the other
  std::optional<Trial> trial_;
  OtherNodes others_;
  SpeedWindows windows_;
  std::optional<Speed> base_;   // steps a second, at the values that hold
  std::optional<Speed> first_;  // at those that the loader began with
  bool awaits_reader_ = false;
  std::int64_t since_ms_ = 0;  // that something is waited for
  bool told_nothing_ = false;
  int rewrites_ = 0;    // of this round
  int unreadable_ = 0;  // looks one after the other
  std::int64_t version_ = 0;
  std::int64_t written_ = 0;  // the version of the last order
  LearningRate rate_;
};

}  // namespace elastic::tuning
