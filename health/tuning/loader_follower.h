#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "health/tuning/loader_word.h"
#include "health/tuning/paral_config.h"

namespace elastic::tuning {

// | what a node tells of its memory to the one that decides about the loaders | one word in {kTellMemoryMs}, and one
// for each change that its workers have read; one in {kTellAgainMs} at least, since the coordinator, or the session,
// may be another one | the next one has what is new |
inline constexpr std::int64_t kTellMemoryMs = 5000;
inline constexpr std::int64_t kTellAgainMs = 30'000;
// It tells of its memory if that has changed by more than this part.
inline constexpr double kMemoryChange = 0.1;

// Holds the file of a node that does not decide to what the node of group rank 0 has chosen. No value is below what
// this node's own loader began with.
class LoaderFollower {
 public:
  struct Effects {
    std::optional<Order> write = {};
    std::optional<LoaderWord> tell = {};
    std::string problem = {};  // why the file cannot be held to it, once in a round; empty: it can
  };
  // `cpus`: that a rank may use.
  explicit LoaderFollower(int cpus) : cpus_(cpus) {}

  // What this node chose itself while it decided.
  void hold_values(const ChosenValues& values) { held_ = values; }
  // What holds, as far as this node knows: what was chosen last, or what it has taken. What is being tried does not.
  const ChosenValues& values() const { return held_; }

  // Workers are about to be started. The order is for the file that they will find; without one that is first_config().
  std::optional<Order> begin_round();
  void end_round();
  // The node of group rank 0 has chosen, for the round that is prepared, or that runs: then the next look writes it, to
  // the file as it is then.
  void follow_values(const ChosenValues& values);
  // `file`: nothing where it cannot be read. `was_read`: a worker has read it since it was last written.
  Effects look_at_file(std::int64_t now_ms, const std::optional<ParalConfig>& file, bool was_read,
                       std::optional<std::uint64_t> free_bytes);

 private:
  static constexpr std::size_t kCount = 2;  // num_workers, batch_size
  std::optional<std::int64_t> wanted(std::size_t which) const;
  bool is_as_wanted(const ParalConfig& file) const;
  void choose(const ChosenValues& values);
  Order order();
  void hold_file(const std::optional<ParalConfig>& file, Effects& out);
  void tell_if_new(std::int64_t now_ms, std::optional<std::uint64_t> free_bytes, Effects& out);

  int cpus_;
  ChosenValues held_;                                       // over rounds
  std::optional<ChosenValues> told_;                        // in this round
  ChosenValues chosen_;                                     // what the file is to say
  std::array<bool, kCount> differ_{};                       // it has said something else than the loader in this round
  std::array<std::optional<std::int64_t>, kCount> starts_;  // of this node's loader, where nothing was written before
  bool is_running_ = false;
  bool has_written_ = false;
  bool is_to_write_ = false;
  bool awaits_reader_ = false;
  std::int64_t version_ = 0;        // of the file
  std::int64_t read_ = 0;           // NodeState::version
  int rewrites_ = 0;                // of this round
  int unreadable_ = 0;              // looks one after the other
  std::optional<NodeState> state_;  // as it was told last in this round
  std::int64_t told_ms_ = 0;        // when
  LearningRate rate_;
};

}  // namespace elastic::tuning
