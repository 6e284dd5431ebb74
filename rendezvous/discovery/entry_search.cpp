#include "rendezvous/discovery/entry_search.h"

#include <algorithm>
#include <utility>

#include "src/base/text.h"
#include "src/base/wall_time.h"

namespace elastic::discovery {

namespace {

using Level = Tell::Level;

// The entry of an answer; empty if there is none, an error if its text is no entry.
Result<std::optional<Entry>> entry_in(const std::string& text) {
  if (text.empty()) return std::optional<Entry>();
  auto entry = read_entry(text);
  if (!entry) return std::unexpected(std::move(entry.error()));
  return std::optional(std::move(*entry));
}

}  // namespace

// --- Finding the coordinator. ----------------------------------------------------------------------------

EntrySearch::Effects EntrySearch::find(const Known& known) {
  known_ = known;
  return {Read{}};
}

EntrySearch::Effects EntrySearch::read(const RegisterAnswer& answer, std::int64_t now_ms) {
  Effects out;
  if (!answer) {
    // Without the file a node goes on with what it has read there.
    if (is_written_) {
      out.emplace_back(Found{own_.leader, true, true});
    } else if (there_) {
      go_to_next(out);
    } else {
      out.emplace_back(NotFound{answer.error()});
    }
    return out;
  }
  auto there = entry_in(*answer);
  if (!there) return {NotFound{{there.error().reason, true}}};
  if (!*there) {
    seen_.clear();
    there_.reset();
    if (known_.belongs && is_written_) {
      out.emplace_back(Found{own_.leader, true, true});  // it may lead the job still; then its entry is written again
    } else if (known_.belongs || (known_.has_met_it && !is_written_)) {
      out.emplace_back(NotFound{{"the job's coordinator has ended, and no node hosts another one"}});
    } else if (!settings_.may_host) {
      out.emplace_back(NotFound{{"no node hosts the coordinator yet, and this one may not (is_host=0)"}});
    } else {
      begin("", is_written_ ? "its own entry was removed" : "no node had begun it", out);
    }
    return out;
  }
  if ((*there)->process == settings_.process) {
    seen_.clear();
    there_.reset();
    if (is_open_ && !std::exchange(is_written_, true)) {
      // An earlier attempt of this node has written it, and was given up before its answer came.
      out.emplace_back(Hosts{format("{}, in {}", endpoint_of(own_.leader), settings_.place), reason_});
    }
    out.emplace_back(Found{(*there)->leader, true, true});
    return out;
  }
  close_if_unwritten(out);
  if (seen_ != *answer) {
    seen_ = *answer;
    there_ = std::move(*there);
    how_.assign(1 + there_->next_leaders.size(), Tried::kNot);
    turn_ = 0;
    told_silence_ = false;
  }
  if (!is_dead()) {
    go_to_next(out);
    return out;
  }
  const std::string dead = format("no process of the job listens any more at {}", who(now_ms));
  const bool may_begin = !known_.belongs && settings_.refusal_is_proof && settings_.may_host;
  // A node that may not begin the job asks again: its coordinator may be there later.
  if (!may_begin) std::ranges::fill(how_, Tried::kNot);
  if (known_.belongs) {
    out.emplace_back(NotFound{{dead}});
  } else if (!settings_.refusal_is_proof) {
    out.emplace_back(
        NotFound{{format("{}; with failover_evidence=none that is no proof: if the job is over, remove its "
                         "entry, or choose another --rdzv-id",
                         dead)}});
  } else if (!settings_.may_host) {
    out.emplace_back(NotFound{{format("{}, and this node may not begin the job (is_host=0)", dead)}});
  } else {
    begin(seen_, dead, out);
  }
  return out;
}

void EntrySearch::begin(const std::string& expected, const std::string& reason, Effects& out) {
  expected_ = expected;
  reason_ = reason;
  out.emplace_back(Open{});
}

void EntrySearch::go_to_next(Effects& out) {
  const bool is_other_host = turn_ == 0 && there_->host != settings_.host;
  out.emplace_back(Found{place(turn_), false, there_->incarnation == 0, is_other_host});
}

EntrySearch::Effects EntrySearch::opened(const Entry::Place& here, std::int64_t now_ms) {
  is_open_ = true;
  own_ = Entry{
      .birth_ms = now_ms, .process = settings_.process, .host = settings_.host, .leader = here, .written_ms = now_ms};
  return {Tell{Level::kDebug, "discovery", format("{} is to name {}: {}", settings_.place, endpoint_of(here), reason_)},
          Write{expected_, entry_text(own_)}};
}

EntrySearch::Effects EntrySearch::not_opened(const std::string& problem) { return {NotFound{{problem}}}; }

EntrySearch::Effects EntrySearch::written(const RegisterAnswer& answer, std::int64_t now_ms) {
  // The entry may have been written nevertheless, so the coordinator stays open until it is read again.
  if (!answer) return {NotFound{answer.error()}};
  if (!answer->empty()) return read(answer, now_ms);
  Effects out;
  close_if_unwritten(out);
  out.emplace_back(NotFound{{"another node has just removed its entry"}});
  return out;
}

void EntrySearch::close_if_unwritten(Effects& out) {
  if (is_written_ || !std::exchange(is_open_, false)) return;
  out.emplace_back(Close{});
}

EntrySearch::Effects EntrySearch::tried(Tried how, std::int64_t now_ms) {
  if (!there_) return {};
  how_[turn_] = how;
  Effects out;
  if (how == Tried::kSilent && !std::exchange(told_silence_, true)) {
    out.emplace_back(Tell{Level::kWarning, "discovery_silent",
                          explain(format("it does not answer, so that the job may go on there{}",
                                         how_.size() > 1 ? "; asking the nodes that may lead it next" : ""),
                                  now_ms)});
  }
  turn_ = (turn_ + 1) % how_.size();
  return out;
}

bool EntrySearch::has_untried() const { return there_ && std::ranges::find(how_, Tried::kNot) != how_.end(); }

bool EntrySearch::is_dead() const {
  return std::ranges::all_of(how_, [](Tried how) { return how == Tried::kRefused || how == Tried::kStranger; });
}

const Entry::Place& EntrySearch::place(std::size_t which) const {
  return which == 0 ? there_->leader : there_->next_leaders[which - 1];
}

std::string EntrySearch::who(std::int64_t now_ms) const {
  const std::string more = there_->next_leaders.empty() ? "" : format(" and {} more", there_->next_leaders.size());
  return format("{}{}, which {} named {} ago", endpoint_of(there_->leader), more, settings_.place,
                span_text(now_ms - there_->written_ms));
}

// A silent place is what keeps the node from beginning the job.
std::string EntrySearch::explain(const std::string& problem, std::int64_t now_ms) const {
  if (!there_) return problem;
  const auto silent = std::ranges::find(how_, Tried::kSilent);
  const bool is_another = silent != how_.end() && silent != how_.begin() + static_cast<std::ptrdiff_t>(turn_);
  const std::size_t which = is_another ? static_cast<std::size_t>(silent - how_.begin()) : turn_;
  // A node that has had a coordinator begins no job while there is no entry.
  const char* const remedy =
      known_.belongs || known_.has_met_it ? "end this node" : "remove its entry there, or choose another --rdzv-id";
  const bool proves_nothing = !settings_.refusal_is_proof && !known_.belongs && !is_another;
  return format("{}, which {} named {} ago as a place of this job: {}; {}if the job is over, {}",
                endpoint_of(place(which)), settings_.place, span_text(now_ms - there_->written_ms),
                is_another ? "it does not answer" : problem,
                proves_nothing ? "with failover_evidence=none that is no proof: " : "", remedy);
}

// --- Keeping the entry. ----------------------------------------------------------------------------------

EntryKeeper::Effects EntryKeeper::check_entry(const Entry& own) {
  own_ = own;
  return {Read{}};
}

EntryKeeper::Effects EntryKeeper::read(const RegisterAnswer& answer, std::int64_t now_ms) {
  const auto there = answer ? entry_in(*answer) : Result<std::optional<Entry>>();
  if (withdraws_) {
    if (answer && there && *there && (*there)->process == own_.process) return {Write{*answer, ""}};
    return answer ? Effects{Withdrawn{}} : failed(answer.error().reason);
  }
  if (!answer || !there) return failed(answer ? there.error().reason : answer.error().reason);
  const Keeping keeping = keep_entry(own_, *there);
  Effects out = keeping.writes ? Effects{} : works();
  if (keeping.gossips) out.emplace_back(Gossip{(*there)->leader});
  own_.written_ms = now_ms;
  if (keeping.writes) out.emplace_back(Write{*answer, entry_text(own_)});
  return out;
}

EntryKeeper::Effects EntryKeeper::written(const RegisterAnswer& answer) {
  if (!answer) return failed(answer.error().reason);
  return withdraws_ ? Effects{Withdrawn{}} : works();
}

EntryKeeper::Effects EntryKeeper::failed(const std::string& reason) {
  if (withdraws_) {
    return {
        Tell{Level::kInfo, "discovery_entry_stays",
             format("the entry of this node stays in {}: {}; the next job of this name replaces it", place_, reason)},
        Withdrawn{}};
  }
  if (std::exchange(fails_, true)) return {};
  return {Tell{Level::kWarning, "discovery_not_written",
               format("{} does not take this job's entry: {}; training goes on, and nodes that look for the "
                      "job there may not find it meanwhile",
                      place_, reason)}};
}

EntryKeeper::Effects EntryKeeper::works() {
  if (!std::exchange(fails_, false)) return {};
  return {Tell{Level::kInfo, "discovery_written", format("{} takes this job's entry again", place_)}};
}

EntryKeeper::Effects EntryKeeper::withdraw(protocol::AgentId process) {
  own_.process = process;
  withdraws_ = true;
  return {Read{}};
}

}  // namespace elastic::discovery
