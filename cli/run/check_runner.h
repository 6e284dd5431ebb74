#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "health/messages/messages.h"
#include "health/probe/probe_process.h"
#include "rendezvous/agent/lifecycle.h"
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

// Answers the check's orders to this node by a probe: this program once more, as a process that lives through all
// phases of a round's check and is killed where it does not answer in time. However it ends, each order is answered.
class CheckRunner {
 public:
  struct Handlers {
    std::function<void(agent::NodeChecked)> on_checked;
    // Starts the probe, and kills it. Of its end exited() is to be told.
    std::function<Result<pid_t>(const process::Command&)> start;
    std::function<void()> kill;
  };
  CheckRunner(net::Loop& loop, CheckRunnerSettings settings, Handlers handlers);

  void carry_out(const agent::CheckNode& order);
  void exited(ExitStatus status);
  // The check is over, or its round; what is under way is not answered any more.
  void stop();
  // The same, but the probe is not killed: it gives its GPUs back, and ends. Whether there is one.
  bool leave();
  // What this node has found of itself in the last check, with what has kept it from being checked.
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
  std::string line_;  // that is being read
  std::optional<agent::CheckNode> asked_;
  health::CheckOrder tests_;  // those of the phase that is under way, after kSelfPhase
  std::vector<health::Finding> findings_;
};

}  // namespace elastic::run
