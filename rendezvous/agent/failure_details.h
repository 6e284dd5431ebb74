#pragma once

#include <string>
#include <utility>

#include "rendezvous/agent/lifecycle_events.h"

namespace elastic::agent {

// What is known of the worker that is why the job failed: the text that its node gathers and tells the coordinator with
// JobResultHeard, and that the coordinator tells all nodes. While it is being gathered, the node's timer belongs to
// this class.
class FailureDetails {
 public:
  // That worker ran on this node: its details are to be gathered when no process of the round is left.
  void want() { stage_ = Stage::kDue; }
  // No process of the round is left: begins to gather details that are wanted.
  void gather(Effects& out);
  // The answer to GatherDetails has come; or, with an empty `text`, the user does not wait for it. Does nothing unless
  // details are being gathered.
  void gathered(std::string text, Effects& out);
  // The timer that gather() has started has fired: the answer is not waited for any longer.
  void timed_out(Effects& out);
  // The node ends without details. The timer is the caller's again.
  void drop() { stage_ = Stage::kNone; }
  // The job ends with a later job result: what this node gathers, or has gathered, does not belong to it.
  void superseded();
  // What the coordinator has told all nodes.
  void heard_text(std::string text) { told_ = std::move(text); }

  // Details are wanted and not there: the coordinator is told later that the job result was heard.
  bool are_missing() const { return stage_ != Stage::kNone; }
  bool are_being_gathered() const { return stage_ == Stage::kAwaited; }
  // The details that this node has gathered; empty: none.
  const std::string& own() const { return own_; }
  // The details for the job's report: what the coordinator has told, or else what this node has gathered; empty: none.
  const std::string& for_report() const { return told_.empty() ? own_ : told_; }

  // Called after each event.
  void check_invariants() const;

 private:
  friend struct LifecycleBreaker;  // a test's

  enum class Stage { kNone, kDue, kAwaited };

  void are_there(std::string text, Effects& out);

  Stage stage_ = Stage::kNone;
  std::string own_;
  std::string told_;
  bool is_superseded_ = false;
};

}  // namespace elastic::agent
