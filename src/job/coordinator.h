#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/membership/ranks.h"
#include "rendezvous/protocol/messages.h"
#include "src/job/budget.h"

namespace elastic::job {

// What the job was started with.
struct JobSettings {
  int nodes = 1;  // a round forms when so many have joined
  int max_restarts = 0;
};

// What the coordinator wants done: one message to one node.
struct Send {
  protocol::NodeId to = 0;
  protocol::CoordinatorMessage message;
};

// Decides for the whole job: when a round forms, when it stops, whether it is restarted, how the job
// ends. It does nothing itself: each input returns what is to be sent.
//
//   forming --all joined--> preparing --store open--> running --all succeeded--> ended
//      ^                        |                        | failure, departure
//      |                        +--------> stopping <----+
//      +--all stopped, restart paid---------- | --all stopped, none left or stopped by signal--> ended
class Coordinator {
 public:
  explicit Coordinator(JobSettings settings);

  // A message from a node. Messages of an older round than the present one change nothing.
  std::vector<Send> on_message(protocol::NodeId from, const protocol::AgentMessage& message);

  bool ended() const { return state_ == State::kEnded; }

 private:
  enum class State { kForming, kPreparing, kRunning, kStopping, kEnded };
  struct Node {
    membership::NodeShape shape;
    bool succeeded = false;
    bool stopped = true;
  };
  // Why a round is being stopped, hence what follows it. A later cause of higher order replaces it.
  enum class StopCause { kWorkerFailure, kCannotRun, kSignal };
  struct Stopping {
    StopCause cause;
    std::string reason;
    int signal = 0;
  };

  using Sends = std::vector<Send>;
  void on(protocol::NodeId from, const protocol::NodeJoins& message, Sends& out);
  void on(protocol::NodeId from, const protocol::StoreIsOpen& message, Sends& out);
  void on(protocol::NodeId from, const protocol::WorkerFailed& message, Sends& out);
  void on(protocol::NodeId from, const protocol::WorkersSucceeded& message, Sends& out);
  void on(protocol::NodeId from, const protocol::NodeCannotRun& message, Sends& out);
  void on(protocol::NodeId from, const protocol::NodeStopped& message, Sends& out);
  void on(protocol::NodeId from, const protocol::NodeLeaves& message, Sends& out);

  void prepare_round(Sends& out);
  void stop_round(Stopping cause, Sends& out);
  void after_stop(Sends& out);
  void end(protocol::Verdict verdict, Sends& out);
  void tell_all(const protocol::CoordinatorMessage& message, Sends& out) const;
  // A round is under way and this is its number.
  bool is_current(protocol::RoundNumber round) const;

  JobSettings settings_;
  RestartBudget budget_;
  State state_ = State::kForming;
  protocol::RoundNumber round_ = 0;
  std::map<protocol::NodeId, Node> nodes_;
  std::optional<Stopping> stopping_;
  std::vector<protocol::WorkerFailure> failures_;
};

}  // namespace elastic::job
