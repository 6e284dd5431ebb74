#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/evidence_collector.h"
#include "cli/run/hang_reporter.h"
#include "cli/run/hang_signs.h"
#include "health/progress/kinds.h"
#include "rendezvous/agent/lifecycle_events.h"
#include "src/base/environment.h"
#include "src/net/loop.h"
#include "src/net/side_thread.h"

namespace elastic::run {

// This node's part in looking for hangs: it looks at its processes now and then, reads evidence when it is asked for,
// and tells the user.
class HangHost {
 public:
  struct Handlers {
    EvidenceCollector::Handlers evidence;
    // The agent is to hear of this.
    std::function<void(agent::Event)> on_event;
    // The coordinator is to be told of progress that it does not know yet.
    std::function<void()> tell_progress;
    std::function<std::optional<progress::Progress>(int local_rank)> progress_of;
    // The last hang that was told, as it stands now.
    std::function<void(const std::optional<report::Hang>&)> hang_is;
  };
  // `files` does all access to the log directory, and outlives it. `looks`: whether it looks at its processes without
  // being asked.
  HangHost(net::Loop& loop, net::SideThread& files, EvidenceSettings settings, std::string run_id, bool looks,
           Handlers handlers);

  // The workers of a round are about to be started, with these variables among others. `directory` is for the files of
  // its evidence; empty: none.
  void begin_round(const protocol::PrepareRound& round, std::string directory, const std::vector<Variable>& variables);
  void started(int local_rank, pid_t pid);
  void ended(int local_rank);
  void end_round();

  void perform(const agent::ReadEvidence& effect);
  void perform(const agent::StopEvidence&) { collector_.stop(); }
  // The worker store has asked for dumps, wherever it is.
  void perform(const agent::AwaitDumps& effect);
  void perform(const agent::TellHang& effect);
  void perform(const agent::TellHangOver& effect);

 private:
  struct Worker {
    int local_rank = 0;
    pid_t pid = 0;
  };
  int rank_of(int local_rank) const { return place_.base_rank + local_rank; }
  void plan_look();
  void look_at_workers();
  // The order for evidence of all workers that live.
  EvidenceOrder evidence_order() const;
  void has_read(const protocol::CollectEvidence& order, hang::NodeFacts facts);

  net::Loop& loop_;
  Handlers handlers_;
  bool looks_;
  EvidenceCollector collector_;
  HangReporter reporter_;
  protocol::RoundNumber round_ = 0;
  protocol::NodePlace place_ = {};
  std::string directory_;
  std::vector<std::string> variables_;
  std::int64_t began_ms_ = 0;
  std::int64_t began_us_ = 0;    // the same, of CLOCK_MONOTONIC_RAW
  int begun_ = 0;                // workers that were started
  std::vector<Worker> workers_;  // those of them that live
  std::int64_t collection_ = 0;  // the last one of the round
  std::vector<int> can_dump_;    // ranks whose recorders were not read, and that would dump
  HangSigns signs_;
  net::Timer timer_;
  bool is_planned_ = false;
};

}  // namespace elastic::run
