#include "rendezvous/agent/failure_details.h"

#include <utility>

#include "src/base/check.h"

namespace elastic::agent {

void FailureDetails::gather(Effects& out) {
  if (stage_ != Stage::kDue) return;
  stage_ = Stage::kAwaited;
  out.push_back(GatherDetails{});
  out.push_back(StartTimer{protocol::kDetailsMs});
}

void FailureDetails::superseded() {
  is_superseded_ = true;
  own_.clear();
}

// Details are wanted once, when the job result comes.
void FailureDetails::check_invariants() const {
  ELASTIC_CHECK(!are_missing() || own_.empty());
  ELASTIC_CHECK(!is_superseded_ || own_.empty());
}

void FailureDetails::gathered(std::string text, Effects& out) {
  if (stage_ != Stage::kAwaited) return;
  out.push_back(StopTimer{});
  are_there(std::move(text), out);
}

void FailureDetails::timed_out(Effects& out) { are_there({}, out); }

void FailureDetails::are_there(std::string text, Effects& out) {
  stage_ = Stage::kNone;
  if (!is_superseded_) own_ = std::move(text);
  out.push_back(ToCoordinator{protocol::JobResultHeard{own_}});
}

}  // namespace elastic::agent
