#include "health/tuning/node_tuner.h"

#include <utility>

namespace elastic::tuning {

NodeTuner::Effects NodeTuner::lead_round(Place place, std::int64_t now_ms) {
  Effects out;
  if (!std::exchange(leads_, true)) {
    tuner_ = LoaderTuner(cpus_);
    tuner_.inherit(follower_.values());
  }
  node_count_ = place.node_count;
  conclude(out);
  tuner_.round_forms(place.node_count - 1);
  told_ = {.version = -1};  // whatever it is, nothing included
  tell_values(now_ms, out);
  return out;
}

// Another node decides from now on.
void NodeTuner::follow(Effects& out) {
  if (!std::exchange(leads_, false)) return;
  conclude(out);
  follower_.hold_values(tuner_.values());
}

NodeTuner::Effects NodeTuner::begin_round(Place place, bool may_restart, std::int64_t now_ms) {
  Effects out;
  if (place.node_rank != 0) {
    follow(out);
    out.write = follower_.begin_round();
    return out;
  }
  out = of(tuner_.begin_round(may_restart, now_ms));
  tell_values(now_ms, out);
  return out;
}

NodeTuner::Effects NodeTuner::rank_failed(std::string_view memory) {
  Effects out;
  if (leads_) {
    end_ = {.rank_failed = true, .memory = std::string(memory)};
  } else {
    out.tell.push_back({.failed = RankFailed{std::string(memory)}});
  }
  return out;
}

NodeTuner::Effects NodeTuner::end_round(bool rank_failed) {
  Effects out;
  if (!leads_) {
    follower_.end_round();
    return out;
  }
  has_ended_ = true;
  end_.rank_failed |= rank_failed;
  if (node_count_ == 1) conclude(out);
  return out;
}

NodeTuner::Effects NodeTuner::finish() {
  Effects out;
  conclude(out);
  return out;
}

void NodeTuner::conclude(Effects& out) {
  const End end = std::exchange(end_, {});
  if (!std::exchange(has_ended_, false)) return;
  out.notes = tuner_.end_round(end.rank_failed, end.memory).notes;
}

NodeTuner::Effects NodeTuner::heard(int node_rank, const LoaderWord& word, std::int64_t now_ms) {
  Effects out;
  if (node_rank == 0) {
    follow(out);
    if (word.values) follower_.follow_values(*word.values);
    return out;
  }
  if (!leads_) return out;
  if (word.failed) {
    end_.rank_failed = true;
    if (end_.memory.empty()) end_.memory = word.failed->memory;
  }
  if (word.node) tuner_.heard(node_rank, *word.node);
  if (word.values) tuner_.inherit(*word.values);
  tell_values(now_ms, out);
  return out;
}

NodeTuner::Effects NodeTuner::weigh_look(const Look& look) {
  if (leads_) {
    Effects out = of(tuner_.weigh_look(look));
    tell_values(look.now_ms, out);
    return out;
  }
  LoaderFollower::Effects found = follower_.look_at_file(look.now_ms, look.file, look.was_read, look.free_bytes);
  Effects out{.write = found.write};
  if (found.tell) out.tell.push_back(*std::move(found.tell));
  if (!found.problem.empty()) {
    out.notes.push_back({.what = Note::What::kNothing, .text = "nothing is changed: " + found.problem});
  }
  return out;
}

void NodeTuner::tell_values(std::int64_t now_ms, Effects& out) {
  if (node_count_ == 1) return;
  const ChosenValues values = tuner_.values();
  const bool is_due = values != told_ || (values.are_there() && now_ms - told_ms_ >= kTellAgainMs);
  if (!is_due) return;
  told_ = values;
  told_ms_ = now_ms;
  out.tell.push_back({.values = values});
}

}  // namespace elastic::tuning
