#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "health/tuning/loader_follower.h"
#include "health/tuning/loader_tuner.h"
#include "health/tuning/loader_word.h"

namespace elastic::tuning {

// A node's part in the tuning of its job's loaders. The node of group rank 0 decides for all, by a LoaderTuner; the
// others follow, and tell it how they are. Whoever comes to decide later goes on from what it was told.
class NodeTuner {
 public:
  struct Effects {
    std::optional<Order> write = {};
    std::vector<Note> notes = {};
    std::vector<LoaderWord> tell = {};  // the node of group rank 0 if this one follows, else all others
  };
  // Of a round.
  struct Place {
    int node_rank = 0;
    int node_count = 1;
  };
  // `cpus`: that a rank may use.
  explicit NodeTuner(int cpus) : cpus_(cpus), tuner_(cpus), follower_(cpus) {}

  // A round forms in which this node decides. What it tells reaches the others before their workers start.
  Effects lead_round(Place place, std::int64_t now_ms);
  // Workers are about to be started. `may_restart`: another round would follow if one of them fails. The order is for
  // the file that they will find; without one that is first_config().
  Effects begin_round(Place place, bool may_restart, std::int64_t now_ms);
  // A rank of this node has failed by itself; `memory`: the rule by which that was for lack of memory, or empty. What
  // is told here has to be told before the round can have ended for the other nodes.
  Effects rank_failed(std::string_view memory);
  // The workers have ended. `rank_failed`: one of them has failed by itself.
  Effects end_round(bool rank_failed);
  // The node of this rank in the present round has told this.
  Effects heard(int node_rank, const LoaderWord& word, std::int64_t now_ms);
  Effects weigh_look(const Look& look);
  // There will be no other round.
  Effects finish();

 private:
  static Effects of(LoaderTuner::Effects effects) { return {effects.write, std::move(effects.notes), {}}; }
  void follow(Effects& out);
  void conclude(Effects& out);
  void tell_values(std::int64_t now_ms, Effects& out);

  int cpus_;
  LoaderTuner tuner_;
  LoaderFollower follower_;
  bool leads_ = false;
  int node_count_ = 1;
  // How the last round has ended, as far as is known. The tuner hears of it when all nodes have stopped.
  struct End {
    bool rank_failed = false;
    std::string memory = {};
  };
  End end_;
  bool has_ended_ = false;
  ChosenValues told_;  // the last ones
  std::int64_t told_ms_ = 0;
};

}  // namespace elastic::tuning
