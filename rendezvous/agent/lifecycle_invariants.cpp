// What holds of a node after each event, whatever the event was.
#include "rendezvous/agent/lifecycle.h"
#include "src/base/check.h"

namespace elastic::agent {

void Lifecycle::check_invariants(const Effects& out) const {
  round_.check_invariants();
  preparation_.check_invariants();
  leaving_.check_invariants();
  details_.check_invariants();

  const bool is_ending = state_ == State::kEnding || state_ == State::kEnded;
  ELASTIC_CHECK(job_result_.has_value() == is_ending);
  ELASTIC_CHECK(!nothing_left_ || is_ending);
  ELASTIC_CHECK((state_ == State::kEnded) == (is_ending && nothing_left_ && dismissed_));
  // The owner is told of the end once, and then of nothing more.
  const bool finishes = !out.empty() && std::holds_alternative<Finish>(out.back());
  ELASTIC_CHECK(finishes == (state_ == State::kEnded));

  // A round goes on as soon as it can: nothing else would remind the node of it.
  ELASTIC_CHECK(state_ != State::kPreparing || preparation_.ready() == nullptr);
  ELASTIC_CHECK(!runs_or_succeeded() || round_.failures().empty());
  ELASTIC_CHECK(!runs_or_succeeded() || round_.all_have_ended() == (state_ == State::kSucceeded));

  // A node that was told to leave is in no round that is not being stopped, and without a session it ends by itself.
  ELASTIC_CHECK(!leaving_.has_come() || (state_ != State::kPreparing && !runs_or_succeeded()));
  ELASTIC_CHECK(!leaving_.has_come() || !away_ || state_ != State::kIdle || away_->votes_for_ms);

  // A node that waits to leave asks each coordinator that it finds, and its own one again and again.
  ELASTIC_CHECK(state_ != State::kSucceeded || departure_ != Departure::kWanted || timer_.is_set());

  // Processes that do not end, and answers that do not come, are waited for until the timer fires.
  ELASTIC_CHECK(!lingers() || ends_processes());
  ELASTIC_CHECK(awaits_ != Awaits::kBackground || is_ending);
  ELASTIC_CHECK(!ends_processes() || awaits_ == Awaits::kBackground || timer_.is_set());
  ELASTIC_CHECK(!details_.are_missing() || details_.are_being_gathered() == nothing_left_);
  ELASTIC_CHECK(!details_.are_missing() || is_ending);
  ELASTIC_CHECK(!details_.are_being_gathered() || timer_.is_set());
}

}  // namespace elastic::agent
