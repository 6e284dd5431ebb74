#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/evidence_order.h"
#include "health/hang/hang_facts.h"
#include "rendezvous/store/store_view.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/net/side_thread.h"
#include "src/process/spawn.h"

namespace elastic::run {

// Collects what this node knows of a round that makes no progress, without stopping or signalling anything. Each source
// is read by a process of its own, which is killed at its deadline: a file system, a driver or a lock that hangs costs
// that source alone, and the loop waits for nothing. What came late, was refused or lost is said in the facts.
class EvidenceCollector {
 public:
  struct Handlers {
    // Starts a process that reads evidence; several run at once. WorkerTree::start_onlooker().
    std::function<Result<pid_t>(const process::Command&)> start;
    // Kills it with SIGKILL; its starter reaps it. WorkerTree::end_onlooker().
    std::function<void(pid_t)> kill;
    // The view of the round's worker store; none if another node has it. StoreHost::view().
    std::function<std::optional<store::StoreView>(int world_size)> store = {};
  };
  // The facts of this node. Beats, and for how long a state was seen before the collection began, are the caller's to
  // add. `files` are those that were written, or are being written by the side thread.
  struct Collected {
    hang::NodeFacts facts = {};
    std::vector<std::string> files = {};
  };
  using OnDone = std::function<void(Collected)>;

  // `files` does all access to the log directory. Both outlive the collector.
  EvidenceCollector(net::Loop& loop, net::SideThread& files, EvidenceSettings settings, Handlers handlers);
  ~EvidenceCollector();
  EvidenceCollector(const EvidenceCollector&) = delete;
  EvidenceCollector& operator=(const EvidenceCollector&) = delete;

  // Begins; a collection that is under way is ended without a call. `on_done` is called once, from the loop, at the
  // latest kEvidenceMs later.
  void collect(EvidenceOrder order, OnDone on_done);
  bool is_collecting() const;
  // Ends the collection without a call: the round is over, or the alarm is withdrawn.
  void stop();

 private:
  struct Run;
  net::Loop& loop_;
  net::SideThread& files_;
  EvidenceSettings settings_;
  Handlers handlers_;
  std::unique_ptr<Run> run_;       // null: there is no collection
  std::shared_ptr<bool> written_;  // as long as a collection waits for its files
};

}  // namespace elastic::run
