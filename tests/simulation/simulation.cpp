#include "tests/simulation/simulation.h"

#include <algorithm>
#include <utility>

#include "src/base/text.h"
#include "tests/simulation/describe.h"

namespace elastic::simulation {

using protocol::FrameType;

namespace {
enum Stream : std::uint64_t {
  kOfSimulation = 10,
  kOfNetwork,
  kOfWorkers,
  kOfServer,
  kOfFaults,
  kOfShadow,
  kOfEntries,
  kOfHangs = 23,
  kOfNodes = 100,
  kOfServers = 1000
};
// Sizes are checked after each so many steps.
constexpr std::uint64_t kLookAtSizes = 64;
// A node that comes late may wait for a job of its own, and be rejected several times, before it ends, too.
constexpr Ms kTurns = 6;
}  // namespace

Simulation::Simulation(Setup setup, FaultPlan plan, Coverage& coverage, std::ostream* reader)
    : setup_(std::move(setup)),
      trace_(reader),
      random_(setup_.seed, kOfSimulation),
      network_(timeline_, trace_, Random(setup_.seed, kOfNetwork)),
      workers_(timeline_, trace_, network_, Random(setup_.seed, kOfWorkers),
               {setup_.training_ms, setup_.stubborn_percent, setup_.saving_percent}),
      invariants_(*this),
      elections_(*this),
      company_(*this),
      hangs_(*this, Random(setup_.seed, kOfHangs)),
      faults_(*this, std::move(plan), coverage, Random(setup_.seed, kOfFaults)),
      shadow_(*this, setup_, Random(setup_.seed, kOfShadow)) {
  servers_.emplace_back(*this, 0, nullptr, Random(setup_.seed, kOfServer));
  network_.set_speed(setup_.longest_delay_ms, setup_.user_timeout_ms, setup_.steady);
  workers_.host_of = [this](int node) { return nodes_[static_cast<std::size_t>(node)]->host(); };
  workers_.ended = [this](WorkerId id) { nodes_[static_cast<std::size_t>(workers_.at(id).node)]->worker_ended(id); };
  if (!setup_.hangs) return;
  workers_.all_are_started = [this](std::size_t world) { hangs_.world_is_there(world); };
  workers_.goes_on = [this](std::size_t world) { return hangs_.goes_on(world); };
}

Node& Simulation::add_node(NodeSetup setup) {
  const int index = static_cast<int>(nodes_.size());
  nodes_.push_back(std::make_unique<Node>(*this, index, network_.add_host(), std::move(setup),
                                          Random(setup_.seed, kOfNodes + static_cast<std::uint64_t>(index))));
  Node& node = *nodes_.back();
  if (setup_.failover != Setup::Failover::kOff) {
    const auto number = static_cast<std::uint32_t>(servers_.size());
    servers_.emplace_back(*this, number, &node, Random(setup_.seed, kOfServers + number));
    node.set_peer_facts(servers_.back());
  }
  if (setup_.is_by_file()) {
    const auto entries =
        entries_.try_emplace(node.setup().job, timeline_, trace_, network_,
                             Random(setup_.seed, kOfEntries + 20 * entries_.size()), setup_.longest_delay_ms);
    if (entries.second) {
      entries.first->second.changed = [this](const std::string& before, const std::string& after) {
        invariants_.entry_changes(before, after);
      };
    }
    node.set_entries(entries.first->second);
  }
  return node;
}

Server& Simulation::endpoint(std::size_t attempt) {
  if (!setup_.lists_hosts || attempt % 2 == 0) return first_server();
  Server& peer_server = *nodes_[attempt / 2 % nodes_.size()]->server();
  return peer_server.listener() == 0 ? first_server() : peer_server;  // it was never started
}

void Simulation::begin() {
  for (const NodeSetup& node : setup_.nodes) {
    (void)add_node(node);
    if (std::ranges::none_of(jobs_, [&](const Job& known) { return known.name == node.job; }))
      jobs_.push_back({node.job});
  }
  const bool at_node0 = setup_.hosted || setup_.failover == Setup::Failover::kFromNode0;
  const int host = at_node0 ? nodes_.front()->host() : network_.add_host();
  first_server().set_listener(network_.add_listener(host, first_server()));
  // Other nodes may be started before the coordinator is.
  const Ms serves_ms = setup_.hosted ? setup_.nodes.front().starts_ms : random_.chance(70) ? 0 : random_.range(0, 1500);
  if (!setup_.is_by_file() && setup_.failover != Setup::Failover::kFromNode0) {
    expect_start(1);
    timeline_.at(serves_ms, [this] {
      expect_start(-1);
      if (!server().is_up()) server().start();
    });
  }
  for (std::size_t i = 0; i < setup_.nodes.size(); ++i) {
    expect_start(1);
    timeline_.at(setup_.nodes[i].starts_ms, [this, i] {
      expect_start(-1);
      nodes_[i]->start();
    });
  }
  faults_.begin();
}

bool Simulation::run_until(const std::function<bool()>& until) {
  while (!until()) {
    if (!timeline_.step()) return false;
  }
  return true;
}

bool Simulation::is_over() const {
  return starts_expected_ == 0 && std::ranges::none_of(nodes_, [](const auto& node) { return node->is_running(); });
}

SimulationOutcome Simulation::run() {
  SimulationOutcome outcome;
  const Ms bound_ms = settling_bound_ms(setup_);
  bool settled = false;
  try {
    begin();
    // The workers of the last agent may need a moment to end, and so may a guardian.
    while (!(is_over() && workers_.alive().empty())) {
      if (!timeline_.step()) break;
      trace_.add(static_cast<std::uint64_t>(now_ms()));
      invariants_.time_goes_on();
      if (network_.changes() + process_changes_ != changes_seen_) look_at_ways();
      if (timeline_.steps() % kLookAtSizes == 0) invariants_.look_at_sizes();
      if (!calm_since_ms_) continue;
      if (!settled && now_ms() >= *calm_since_ms_ + bound_ms) {
        settled = true;
        invariants_.settled(*calm_since_ms_);
      }
      if (now_ms() > *calm_since_ms_ + kTurns * bound_ms) break;
    }
    invariants_.ended();
  } catch (const Broken& broken) {
    outcome.broken = broken;
    if (trace_.is_read()) line(format("BROKEN: {}: {}", broken.what, broken.text));
  }
  outcome.hash = trace_.hash();
  outcome.ended_ms = now_ms();
  outcome.steps = timeline_.steps();
  outcome.messages = network_.messages();
  outcome.bytes = network_.bytes();
  return outcome;
}

// Updates which nodes could reach the coordinator now.
void Simulation::look_at_ways() {
  changes_seen_ = network_.changes() + process_changes_;
  if (setup_.failover != Setup::Failover::kOff) company_.look();
  if (setup_.moves()) return;  // what a node may find depends on more than that
  const bool serves = server().is_up() && !server().is_paused();
  const int there = network_.host_of(server().listener());
  for (const auto& node : nodes_) {
    const bool awake = node->is_running() && !node->is_disturbed();
    node->way_is_open(serves && awake && network_.reaches(node->host(), there));
  }
}

void Simulation::calm() {
  if (calm_since_ms_) return;
  if (trace_.is_read()) line("nothing goes wrong any more");
  calm_since_ms_ = now_ms();
  faults_.calm();
  network_.heal_all();
  for (auto& [job, entries] : entries_) entries.calm();
  for (const auto& node : nodes_) {
    while (network_.is_up(node->host()) && network_.is_frozen(node->host())) node->thaw();
    while (node->is_disturbed() && node->is_running()) node->resume_agent();
    if (!network_.is_up(node->host())) node->boot_host();
  }
  while (server().is_up() && server().is_paused()) server().resume(true);
  invariants_.rounds_or_verdicts_since_calm_begin();
  hangs_.calm();
}

protocol::StoreEndpoint Simulation::open_store(const Node& node) {
  const std::uint16_t port = next_port_++;
  invariants_.store_opened(port, node);
  return {node.setup().address, port};
}

// --- Bytes on the wire. ----------------------------------------------------------------------------

void Simulation::connects(ConnectionId id, const Node& node, ListenerId to) {
  if (taps_.size() <= id) taps_.resize(id + 1);
  taps_[id].node = &node;
  taps_[id].agent = node.agent_id();
  const auto listens = [to](const Server& server) { return server.listener() == to; };
  const auto server = std::ranges::find_if(servers_, listens);
  taps_[id].server = server != servers_.end() ? &*server : nullptr;
}

void Simulation::sniff(ConnectionId id, End from, Bytes bytes) {
  if (id >= taps_.size() || taps_[id].node == nullptr) return;
  Tap& tap = taps_[id];
  protocol::FrameReader& reader = tap.readers[static_cast<std::size_t>(from)];
  while (reader.next(bytes, 1 << 20) == protocol::FrameReader::Step::kFrame) frame_sent(id, tap, from, reader.frame());
}

void Simulation::frame_sent(ConnectionId id, Tap& tap, End from, const protocol::Frame& frame) {
  const Node& node = *tap.node;
  if (protocol::is_agent_message(frame.type) && from == End::kClient) {
    const bool matters = trace_.is_read() || frame.type == FrameType::kNodeJoins ||
                         frame.type == FrameType::kNodeStopped || frame.type == FrameType::kWorkersSucceeded ||
                         frame.type == FrameType::kRoundHeard || frame.type == FrameType::kNodeLeaves ||
                         (hangs_.are_on() && frame.type == FrameType::kNodeEvidence);
    if (const auto message =
            matters ? protocol::read_frame<protocol::AgentMessage>(frame) : std::unexpected(std::string())) {
      if (trace_.is_read()) line(format("node {} says {}", node.index(), text(*message)));
      if (const auto* stopped = std::get_if<protocol::NodeStopped>(&*message)) {
        invariants_.answered(node, tap.agent, frame.stamp.incarnation, stopped->round);
      } else if (const auto* succeeded = std::get_if<protocol::WorkersSucceeded>(&*message)) {
        invariants_.answered(node, tap.agent, frame.stamp.incarnation, succeeded->round);
      } else if (const auto* heard = std::get_if<protocol::RoundHeard>(&*message)) {
        elections_.heard(node, tap.agent, frame.stamp, heard->round);
      } else if (std::holds_alternative<protocol::NodeLeaves>(*message)) {
        elections_.leaves(tap.agent);
      } else if (const auto* evidence = std::get_if<protocol::NodeEvidence>(&*message)) {
        hangs_.invariants().answered(id, *evidence);
      } else if (const auto* joins = std::get_if<protocol::NodeJoins>(&*message)) {
        using Activity = protocol::AgentFacts::Activity;
        const bool answers = joins->facts.activity == Activity::kIdle || joins->facts.activity == Activity::kSucceeded;
        if (answers && joins->facts.incarnation != 0)
          invariants_.answered(node, tap.agent, joins->facts.incarnation, joins->facts.round);
      }
    }
  } else if (protocol::is_coordinator_message(frame.type) && from == End::kServer) {
    const auto message = protocol::read_frame<protocol::CoordinatorMessage>(frame);
    if (!message) invariants_.broken("what is sent can be read", protocol::name_of(frame.type));
    if (trace_.is_read()) line(format("node {} is told {}", node.index(), text(*message)));
    if (tap.server == nullptr) return;
    const bool is_of_service = std::holds_alternative<protocol::StacksWanted>(*message);
    if (recorder_ && !is_of_service) recorder_->sends({tap.server->number(), node.setup().job}, id, *message);
    if (const auto* prepare = std::get_if<protocol::PrepareRound>(&*message)) {
      invariants_.sent(node, tap.agent, frame.stamp, *prepare, *tap.server);
      elections_.sent(node, tap.agent, frame.stamp, *prepare, *tap.server);
    }
    if (const auto* run = std::get_if<protocol::RunWorkers>(&*message)) {
      invariants_.sent(node, tap.agent, frame.stamp, *run);
      elections_.sent(node, frame.stamp, *run, *tap.server);
    }
    if (const auto* end = std::get_if<protocol::EndJob>(&*message)) {
      invariants_.sent(node, tap.agent, frame.stamp, *end, *tap.server);
      elections_.sent(node, frame.stamp, *end, *tap.server);
    }
    if (const auto* dismiss = std::get_if<protocol::Dismiss>(&*message)) {
      invariants_.sent(node, tap.agent, frame.stamp, *dismiss, *tap.server);
      elections_.leaves(tap.agent);
    }
    if (const auto* collect = std::get_if<protocol::CollectEvidence>(&*message))
      hangs_.invariants().sent(node, id, frame.stamp, *collect, *tap.server);
    if (const auto* told = std::get_if<protocol::HangTold>(&*message))
      hangs_.invariants().sent(node, id, frame.stamp, *told, *tap.server);
    if (const auto* over = std::get_if<protocol::HangOver>(&*message))
      hangs_.invariants().sent(node, id, frame.stamp, *over, *tap.server);
    if (const auto* rejected = std::get_if<protocol::Rejected>(&*message)) {
      if (!rejected->retry_ms) invariants_.turned_away(tap.agent);
      company_.is_told_to_wait(tap.agent, now_ms() + rejected->retry_ms.value_or(0));
    }
  }
  faults_.message_is_sent(frame.type);
}

// --- Nodes. ----------------------------------------------------------------------------------------

void Simulation::agent_started(Node&) {}
void Simulation::agent_died(Node&) {
  invariants_.look_for_witnesses();
  invariants_.knowledge_is_lost();
}

void Simulation::agent_acts(Node& node, const agent::Effect& effect) {
  const auto* warn = std::get_if<agent::Warn>(&effect);
  // The node has waited for the others for long enough, and ends as its own workers have.
  if (warn != nullptr && warn->event == "exit_barrier") invariants_.turned_away(node.agent_id());
  hangs_.agent_acts(node, effect);
  faults_.agent_acts(effect.index());
}

void Simulation::agent_finished(Node& node, const agent::Finish& end) {
  invariants_.agent_finished(node, end);
  invariants_.look_for_witnesses();
  invariants_.knowledge_is_lost();
}

void Simulation::workers_start(Node& node, const agent::StartWorkers& order, protocol::Incarnation incarnation) {
  invariants_.workers_start(node, order, incarnation);
}

void Simulation::worker_started(WorkerId id) {
  invariants_.worker_started(id);
  hangs_.worker_started(id);
}

void Simulation::workers_can_be_killed(const Node& node) { invariants_.workers_can_be_killed(node); }

void Simulation::hosting_node_left() { server().leave(); }

// --- The coordinator. ------------------------------------------------------------------------------

std::vector<std::string> Simulation::job_names() const {
  std::vector<std::string> names;
  for (const Job& job : jobs_) names.push_back(job.name);
  return names;
}

Server* Simulation::server_of(const std::string& job) {
  if (!setup_.moves()) return server().is_up() ? &server() : nullptr;
  // The server that acts, or else that of a candidate.
  Server* found = nullptr;
  for (Server& server : servers_) {
    const coordinator::Coordinator* const coordinator = server.is_up() ? server.find(job) : nullptr;
    if (coordinator == nullptr) continue;
    if (coordinator->may_act()) return &server;
    found = &server;
  }
  return found != nullptr ? found : first_server().is_up() ? &first_server() : nullptr;
}

std::optional<int> Simulation::coordinator_host(const std::string& job) {
  const Server* const decides = setup_.moves() ? server_of(job) : &server();
  return decides != nullptr ? std::optional(network_.host_of(decides->listener())) : std::nullopt;
}

EntryRegister* Simulation::entries_of(const std::string& job) {
  const auto found = entries_.find(job);
  return found != entries_.end() ? &found->second : nullptr;
}

void Simulation::coordinator_takes(const Server& server, const std::string& job, const coordinator::Event& event,
                                   std::int64_t now_ms) {
  const OfServer which{server.number(), job};
  shadow_.takes(which, server.find(job), event, now_ms);
  if (recorder_) recorder_->takes(which, *server.find(job), event, now_ms);
  if (!hangs_.are_on()) return;
  const auto* const received = std::get_if<coordinator::MessageReceived>(&event);
  const auto* const evidence = received ? std::get_if<protocol::NodeEvidence>(&received->message) : nullptr;
  const coordinator::Coordinator* const taker = evidence ? server.find(job) : nullptr;
  if (taker != nullptr) hangs_.invariants().taken(server, job, taker->incarnation(), *evidence);
}

void Simulation::coordinator_logs(const Server& server, const std::string& job, const std::string& text) {
  if (recorder_) recorder_->logs({server.number(), job}, text);
}

void Simulation::coordinator_has_acted(const Server& server) {
  if (setup_.failover != Setup::Failover::kOff) {
    invariants_.one_acts();
    company_.has_acted(server);
    for (const Job& job : jobs_) elections_.has_acted(job.name, server);
  }
  for (auto& [job, before] : jobs_) {
    if (recorder_) recorder_->has_acted({server.number(), job}, server.find(job));
    const JobState now = state_of(job);
    if (now == before) continue;
    before = now;
    trace_.add(static_cast<std::uint64_t>(now));
    if (trace_.is_read()) line(format("coordinator: {} is {}", job, name(now)));
    faults_.state_is_entered(now);
  }
}

void Simulation::coordinator_is_gone(const Server& server) {
  shadow_.forget(server.number());
  if (recorder_) recorder_->killed(server.number());
  invariants_.look_for_witnesses();
  for (Job& job : jobs_) job.state = state_of(job.name);
  if (trace_.is_read()) line("coordinator: it is gone");
}

JobState Simulation::state_of(const std::string& job) {
  using State = coordinator::Coordinator::State;
  const Server* server = server_of(job);
  if (server == nullptr) return JobState::kDown;
  const coordinator::Coordinator* coordinator = server->find(job);
  if (coordinator == nullptr) return JobState::kNoJob;
  switch (coordinator->state()) {
    case State::kForming: return coordinator->round() ? JobState::kFormingAgain : JobState::kForming;
    case State::kRecovery: return JobState::kRecovery;
    case State::kPreparing:
      return setup_.check_phases > 0 && coordinator->is_checking() ? JobState::kChecking : JobState::kPreparing;
    case State::kRunning: return JobState::kRunning;
    case State::kStopping: return JobState::kStopping;
    case State::kEnding: return JobState::kEnding;
    case State::kEnded: return JobState::kNoJob;
  }
  return JobState::kNoJob;
}

}  // namespace elastic::simulation
