#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "health/progress/rank_progress.h"

namespace elastic::progress {

// How far the ranks of a node are, in one round. Times are milliseconds of one clock.
class NodeProgress {
 public:
  // `pattern` may be null.
  explicit NodeProgress(std::shared_ptr<const StepPattern> pattern = nullptr) : pattern_(std::move(pattern)) {}

  // New workers are about to be started: nothing is known of them.
  void begin_round(int workers);

  RankProgress& rank(int local_rank) { return ranks_.at(static_cast<std::size_t>(local_rank)); }
  // For a file that several ranks write.
  RankProgress& shared() { return ranks_.back(); }

  struct Speaker {
    std::optional<int> local_rank = {};  // nothing: one of those that write the same file
    Progress progress = {};
    bool operator==(const Speaker&) const = default;
  };
  // Those of whom progress was seen, by local rank.
  std::vector<Speaker> speakers(std::int64_t now_ms) const;

  // What the coordinator is told of a node, however many ranks that has.
  struct Summary {
    Speaker newest = {};  // who gave the last sign of progress
    Speaker oldest = {};  // of those who have given one, who gave none for the longest time
    int speakers = 0;
  };
  std::optional<Summary> summary(std::int64_t now_ms) const;

  // The last step of training of one rank, always the same one, by which the job's speed is measured. First of one
  // whose runtime-metrics file says when it was made.
  struct Step {
    int source = 0;  // what counts it; another number: another count
    std::int64_t step = 0;
    std::int64_t at_ms = 0;  // by the clock of that source
    bool operator==(const Step&) const = default;
  };
  std::optional<Step> last_step(std::int64_t now_ms) const;

  // When the coordinator is to be told, since there was a sign of progress; nothing: it knows all.
  std::optional<std::int64_t> report_due_ms() const;
  // It is told now.
  void reported(std::int64_t now_ms);

 private:
  std::uint64_t beats() const;

  std::shared_ptr<const StepPattern> pattern_;
  std::vector<RankProgress> ranks_;  // by local rank; the last one is of all
  std::uint64_t reported_beats_ = 0;
  std::optional<std::int64_t> reported_ms_;
};

}  // namespace elastic::progress
