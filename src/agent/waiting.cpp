// What a node's life cycle waits for, in words for the user.

#include <algorithm>
#include <vector>

#include "src/agent/lifecycle.h"
#include "src/base/check.h"
#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::agent {

std::optional<Waiting> Lifecycle::waiting() const {
  const Waited waited = waited_for();
  if (waited == Waited::kNothing) return {};
  Waiting out{.what = {}, .since_ms = waited_since_ms_, .until_ms = deadline_ms_};
  switch (waited) {
    case Waited::kNothing:
      break;
    case Waited::kLogs:
      out.what = "waiting for the log directory";
      out.at_end = "given up";
      break;
    case Waited::kEnd: {
      out.what = format("{}: waiting for {}", why_stopping(), who_is_left());
      out.at_end = "killed";
      const bool again = told_to_leave_ms_ && !settings_.forward_signals.contains(*signal_number("INT"));
      if (again) out.hint = "press Ctrl-C again to kill now";
      out.by_user = told_to_leave_ms_.has_value();
      out.unusual = true;
      break;
    }
    case Waited::kDeath:
      out.what = format("killed, but still there: {}", survivors_.empty() ? who_is_left() : survivors_);
      out.at_end = "given up";
      out.unusual = true;
      break;
  }
  return out;
}

Lifecycle::Waited Lifecycle::waited_for() const {
  if (state_ == State::kPreparing && logs_awaited_) return Waited::kLogs;
  const bool sweeping = (state_ == State::kStopping || state_ == State::kEnding) && !awaiting_order_;
  if (!sweeping) return Waited::kNothing;
  return sweep_ == Sweep::kTold ? Waited::kEnd : Waited::kDeath;
}

std::string Lifecycle::why_stopping() const {
  if (leave_signal_ != 0) return format("stopping on {}", signal_name(leave_signal_));
  if (!failures_.empty() && !failures_.front().stopped_by_us) {
    return format("rank {} has failed", failures_.front().rank);
  }
  return state_ == State::kEnding ? "all workers have ended" : "stopping";
}

std::string Lifecycle::who_is_left() const {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].pid != 0 && !workers_[i].exited) ranks.push_back(round_.place.base_rank + static_cast<int>(i));
  }
  if (ranks.empty()) return "processes that workers have left";
  return format("{} worker{} to end (rank{} {})", ranks.size(), ranks.size() == 1 ? "" : "s",
                ranks.size() == 1 ? "" : "s", rank_ranges(ranks));
}

}  // namespace elastic::agent
