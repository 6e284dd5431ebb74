#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/agent/agent.h"
#include "rendezvous/transport/service.h"
#include "tests/simulation/file_discovery.h"
#include "tests/simulation/network.h"
#include "tests/simulation/process.h"
#include "tests/simulation/random.h"
#include "tests/simulation/reach.h"
#include "tests/simulation/setup.h"
#include "tests/simulation/workers.h"

namespace elastic::simulation {

class Simulation;

// A guardian's own connection, which sends one death notice as soon as it is open.
class GuardianWord : public ConnectionOwner {
 public:
  GuardianWord(Simulation& simulation, ByteString word) : simulation_(simulation), word_(std::move(word)) {}
  void connection_made(ConnectionId id) override;
  void connection_read(ConnectionId, ByteString) override {}
  void connection_broken(ConnectionId, const std::string&) override {}

 private:
  Simulation& simulation_;
  ByteString word_;
};

// A host with one elastic-run: the real agent, its guardian (the outer process), its workers.
class Node : public ConnectionOwner {
 public:
  Node(Simulation& simulation, int index, int host, NodeSetup setup, Random random);

  // A new elastic-run of the same command line, with another agent id.
  void start();
  // Where any node may become the next leader: this node's peer port.
  void set_peer_facts(Server& server) { server_ = &server; }
  // Where discovery is by a file: that file.
  void set_entries(EntryRegister& entries) { entries_ = &entries; }

  // Faults. Each does nothing if the process or host that it is about is not running.
  void crash_agent();
  void crash_guardian();
  void crash_host();
  void boot_host();
  void pause_agent();
  void resume_agent();
  void freeze();
  void thaw();
  void signal(int signal);
  void crash_worker(int local_rank, ExitStatus exit);
  void jump_wall_clock(Ms ms) { wall_offset_ms_ += ms; }

  // Its agent is told what its workers show.
  void sees(agent::Event event);

  int index() const { return index_; }
  int host() const { return host_; }
  const NodeSetup& setup() const { return setup_; }
  // Its agent runs. An elastic-run that serves other nodes after that does not count.
  bool is_running() const { return process_.is_alive() && !serves_others_; }
  bool is_disturbed() const { return process_.is_paused(); }
  protocol::AgentId agent_id() const { return agent_id_; }
  // The rank of its local rank 0 in the last round.
  int first_rank() const { return agent_->lifecycle().base_rank(); }
  const agent::Agent* agent() const { return agent_ ? &*agent_ : nullptr; }
  ConnectionId connection() const { return connection_; }
  // The coordinator that the agent is connected to, or was last, is in its process.
  bool is_at_home() const { return at_home_; }
  // The coordinators in this node's process, if it may have any.
  Server* server() const { return server_; }
  Ms local_ms() const;
  // The first true millisecond at which the node's clock shows this.
  Ms when_shows(Ms local_ms) const { return clock_.when_shows(local_ms); }
  // Calls the function in the process of this launch, now or when that is resumed; never if it has ended.
  template <class Doing>
  void in_process(std::uint32_t launch, bool is_timer, Doing&& doing) {
    if (launch == process_.launch()) process_.run(is_timer, std::forward<Doing>(doing));
  }
  std::uint32_t launch() const { return process_.launch(); }
  // The job result of the last elastic-run here that ended by itself.
  const std::optional<protocol::JobResult>& job_result() const { return job_result_; }
  bool was_signalled() const { return was_signalled_; }
  bool lost_its_guardian() const { return guardian_is_lost_; }
  // No process is left that could end the workers when the lease is over.
  bool is_unguarded() const { return guardian_is_lost_ && process_.is_alive() && process_.is_paused(); }
  bool has_workers() const { return !workers_.empty(); }
  // Set if its link has given up although it could have reached the coordinator: how.
  const std::optional<std::string>& gave_up_in_vain() const { return chance_; }
  // It has had no session with the coordinator since then, and no chance to get one.
  bool is_cut_off_since(Ms from_ms) const;
  // Another coordinator leads at its peer port, or with another round.
  void lead_changes();
  void way_is_open(bool open);
  // Bytes that are under way on its connection are lost.
  void connection_is_disturbed();

  void worker_ended(WorkerId id);

  void connection_made(ConnectionId id) override;
  void connection_read(ConnectionId id, ByteString bytes) override;
  void connection_broken(ConnectionId id, const std::string& why) override;

 private:
  void at_local(Ms local_ms, Action action);
  void on(agent::AgentEvent event);
  void on(const agent::AgentEvent& event, std::uint32_t launch);
  void on_later(Ms delay_ms, agent::AgentEvent event);
  void perform(agent::AgentEffect& effect);
  void perform(const agent::Effect& effect);
  void read_evidence(const protocol::CollectEvidence& order);
  void start_workers(const agent::StartWorkers& order);
  void signal_workers(int signal);
  void all_gone_if_so();
  template <class Fired>
  void start_timer(std::uint64_t& number, Ms delay_ms);
  void gather_details();
  void find_crash(protocol::RoundNumber round);
  void collect_stacks(std::uint64_t collection);
  void finish(const agent::Finish& end);
  void serve_others();
  void leave();
  void look_for_coordinator(const agent::Link::Connect& effect);
  bool has_peer_server() const { return server_ != nullptr; }
  void renew_peer_facts();
  void connect(ListenerId to, bool is_home);
  void has_tried(discovery::Tried how);
  Reach::Times times() const;
  void watch_link();
  void tell_guardian();
  void guardian_kills();
  void guardian_speaks_if_empty();
  std::vector<ListenerId> listeners() const;

  Simulation& simulation_;
  int index_;
  int host_;
  NodeSetup setup_;
  Random random_;
  Clock clock_;
  Ms wall_offset_ms_ = 1'700'000'000'000;

  Process process_;  // of the agent
  std::optional<agent::Agent> agent_;
  protocol::AgentId agent_id_ = 0;
  std::deque<agent::AgentEvent> coming_;  // events that came while the agent handled another one
  bool at_work_ = false;
  ConnectionId connection_ = 0;
  bool at_home_ = false;
  bool trying_ = false;       // discovery_ is still to be told how the present attempt ends
  bool is_answered_ = false;  // by the present attempt
  bool may_begin_ = true;     // the job may be begun where the present attempt leads
  ListenerId connects_to_ = 0;
  std::size_t attempts_ = 0;  // at the endpoint
  transport::PeerFacts peer_facts_;
  Server* server_ = nullptr;
  EntryRegister* entries_ = nullptr;
  std::unique_ptr<FileDiscovery> discovery_;  // if entries_ is set
  bool serves_others_ = false;  // the agent has ended; the process goes on while its coordinator is needed
  std::uint64_t timer_ = 0;
  std::uint64_t reading_ = 0;  // of evidence, the last one
  std::uint64_t link_timer_ = 0;
  std::vector<WorkerId> workers_;  // those alive, of any launch of the agent
  bool awaiting_all_gone_ = false;
  std::optional<protocol::RoundNumber> store_of_;
  std::optional<protocol::JobResult> job_result_;
  Reach reach_;
  bool link_is_over_ = false;
  bool was_attached_ = false;
  Ms lost_ms_ = 0;  // when its last session ended
  std::optional<std::string> chance_;
  bool was_signalled_ = false;
  bool guardian_is_lost_ = false;

  // The guardian, which lives on when the agent dies.
  std::optional<Ms> guardian_lease_ms_;
  std::uint64_t guardian_timer_ = 0;
  // The death notice that the agent has prepared for when the round's workers are gone. Its frame is made when it is
  // sent, since few are.
  struct Word {
    protocol::AgentId agent = 0;
    protocol::Incarnation incarnation = 0;
    protocol::Term term = 0;
    protocol::RoundNumber round = 0;
    std::vector<ListenerId> to = {};
  };
  std::optional<Word> word_;
  std::uint32_t word_of_launch_ = 0;
  bool guardian_waits_to_speak_ = false;
  std::deque<std::unique_ptr<GuardianWord>> words_;
};

}  // namespace elastic::simulation
