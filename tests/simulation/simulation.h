#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/company.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/election_rules.h"
#include "tests/simulation/entry_register.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/hangs.h"
#include "tests/simulation/invariants.h"
#include "tests/simulation/network.h"
#include "tests/simulation/node.h"
#include "tests/simulation/recorder.h"
#include "tests/simulation/server.h"
#include "tests/simulation/setup.h"
#include "tests/simulation/shadow.h"
#include "tests/simulation/timeline.h"
#include "tests/simulation/trace.h"
#include "tests/simulation/workers.h"

namespace elastic::simulation {

inline constexpr const char* kSecret = "of the simulator";

struct SimulationOutcome {
  std::optional<Broken> broken;
  std::uint64_t hash = 0;
  Ms ended_ms = 0;
  std::uint64_t steps = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

// The jobs of a seed: hosts, agents, workers, coordinators, and their faults, on one virtual clock. The
// same seed and plan give the same events in the same order, in every build.
class Simulation {
 public:
  // `reader` may be null. `coverage` counts the states in which faults strike.
  Simulation(Setup setup, FaultPlan plan, Coverage& coverage, std::ostream* reader);

  // Runs to the end, or to the first invariant that does not hold.
  SimulationOutcome run();
  // For benchmarks: runs until `until` is true or no action is left.
  bool run_until(const std::function<bool()>& until);
  void begin();
  // Records the events of the coordinators. To be called first.
  void record() { recorder_.emplace(setup_.check_phases > 0); }
  Recorder* recorder() { return recorder_ ? &*recorder_ : nullptr; }

  const Setup& setup() const { return setup_; }
  Timeline& timeline() { return timeline_; }
  Ms now_ms() const { return timeline_.now_ms(); }
  // Unix time.
  Ms wall_ms() const { return 1'790'000'000'000 + now_ms(); }
  Trace& trace() { return trace_; }
  Network& network() { return network_; }
  Workers& workers() { return workers_; }
  // The coordinator's process at the endpoint, which is never started if discovery is by a file.
  Server& server() { return servers_.front(); }
  // The first server at the endpoint, which may be beside the agent of node 0.
  Server& first_server() {
    return setup_.failover == Setup::Failover::kFromNode0 ? *nodes_.front()->server() : servers_.front();
  }
  // The server that a node asks when it looks at the endpoint for the nth time: the first one, and between these the
  // peer ports of the other hosts that the endpoint names.
  Server& endpoint(std::size_t attempt);
  const std::deque<Server>& servers() const { return servers_; }
  std::vector<std::string> job_names() const;
  // The server that decides for a job now; null if there is none.
  Server* server_of(const std::string& job);
  // Its host; none if there is none.
  std::optional<int> coordinator_host(const std::string& job);
  // The file with a job's entry; null if its nodes have an endpoint.
  EntryRegister* entries_of(const std::string& job);
  std::vector<std::unique_ptr<Node>>& nodes() { return nodes_; }
  Invariants& invariants() { return invariants_; }
  Company& company() { return company_; }
  Hangs& hangs() { return hangs_; }
  void line(const std::string& text) { trace_.line(now_ms(), text); }
  void line_if(const std::string& who, const std::string& text) {
    if (!text.empty()) line(who + text);
  }

  // Adds a host with an elastic-run of this setup.
  Node& add_node(NodeSetup setup);
  protocol::StoreEndpoint open_store(const Node& node);
  // An action is planned that may start an agent: the simulation does not end before it.
  void expect_start(int more) { starts_expected_ += more; }
  // There are no faults any more: all ways are open, and all processes run.
  void calm();
  bool is_calm() const { return calm_since_ms_.has_value(); }

  // Called by nodes and by servers.
  void connects(ConnectionId id, const Node& node, ListenerId to);
  void sniff(ConnectionId id, End from, Bytes bytes);
  void agent_started(Node& node);
  void agent_acts(Node& node, const agent::Effect& effect);
  void agent_died(Node& node);
  void agent_finished(Node& node, const agent::Finish& end);
  void workers_start(Node& node, const agent::StartWorkers& order, protocol::Incarnation incarnation);
  void worker_started(WorkerId id);
  void workers_can_be_killed(const Node& node);
  void hosting_node_left();
  void coordinator_takes(const Server& server, const std::string& job, const coordinator::Event& event,
                         std::int64_t now_ms);
  void coordinator_has_acted(const Server& server);
  // A process was started, stopped or continued, or has ended.
  void process_changes() { ++process_changes_; }
  void coordinator_logs(const Server& server, const std::string& job, const std::string& text);
  void coordinator_is_gone(const Server& server);
  // The state of a job, as a row of the table.
  JobState state_of(const std::string& job);

 private:
  // All nodes with one --rdzv-id.
  struct Job {
    std::string name;
    JobState state = JobState::kDown;  // after the last event
  };
  struct Tap {
    const Node* node = nullptr;
    const Server* server = nullptr;
    protocol::AgentId agent = 0;
    protocol::FrameReader readers[2];
  };
  void frame_sent(ConnectionId id, Tap& tap, End from, const protocol::Frame& frame);
  bool is_over() const;
  void look_at_ways();

  Setup setup_;
  Timeline timeline_;
  Trace trace_;
  Random random_;
  Network network_;
  Workers workers_;
  std::deque<Server> servers_;                    // the one at the endpoint, then those of the nodes
  std::map<std::string, EntryRegister> entries_;  // by job
  std::vector<std::unique_ptr<Node>> nodes_;
  Invariants invariants_;
  ElectionRules elections_;
  Company company_;
  Hangs hangs_;
  Faults faults_;
  Shadow shadow_;
  std::optional<Recorder> recorder_;
  std::deque<Tap> taps_;  // by connection
  int starts_expected_ = 0;
  std::uint64_t process_changes_ = 0;
  std::uint64_t changes_seen_ = ~0ULL;
  std::uint16_t next_port_ = 30'000;
  std::optional<Ms> calm_since_ms_;
  std::vector<Job> jobs_;
};

}  // namespace elastic::simulation
