#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "health/messages/messages.h"
#include "health/probe/probe_process.h"
#include "rendezvous/agent/lifecycle_events.h"
#include "src/base/environment.h"
#include "src/base/exit_status.h"
#include "src/base/unique_fd.h"
#include "src/net/loop.h"
#include "src/process/spawn.h"

namespace elastic::run {

// What a check has to know of this node.
struct CheckRunnerSettings {
  // What the probe is asked; the runner itself fills in `interfaces` and `began_us`.
  health::ProbeTask task = {};
  std::string address = {};      // this node's, of which `interfaces` are those; empty: not known
  Environment environment = {};  // the workers', in which the probe runs
};

// Answers the check's orders to this node by a probe: a process of this program that lives through all phases of a
// round's check and is killed if it does not answer in time. However the probe ends, each order is answered.
class CheckRunner {
 public:
  struct Handlers {
    std::function<void(agent::NodeChecked)> on_checked;
    // Start and kill the probe. The owner calls exited() when it has ended.
    std::function<Result<pid_t>(const process::Command&)> start;
    std::function<void()> kill;
  };
  CheckRunner(net::Loop& loop, CheckRunnerSettings settings, Handlers handlers);

  void perform(const agent::CheckNode& order);
  void exited(ExitStatus status);
  // The check or its round is over: kills the probe, and an order without an answer gets none.
  void stop();
  // The same, but the probe is not killed: it gives up its GPUs and ends by itself. True if there is a probe.
  bool leave();
  // This node's own findings in the last check, and why it could not be checked, if it could not.
  const std::vector<health::Finding>& findings() const { return findings_; }

 private:
  health::ProbeTask probe_task() const;
  void begin(const agent::CheckNode& order);
  void ask(const agent::CheckNode& order);
  void read();
  void failed(const std::string& why);
  void answer(std::string result);
  void keep_findings(std::uint32_t phase, const std::string& result);

  net::Loop& loop_;
  CheckRunnerSettings settings_;
  Handlers handlers_;
  UniqueFd channel_;  // to the probe; none: there is no probe
  std::optional<net::ReadWatch> watch_;
  net::Timer deadline_;
  std::string line_;  // the probe's line that is being read
  std::optional<agent::CheckNode> asked_;
  health::CheckOrder tests_;  // those of the phase that is under way, after kSelfPhase
  std::vector<health::Finding> findings_;
};

}  // namespace elastic::run
