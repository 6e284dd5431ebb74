#include "tests/simulation/node.h"

#include <algorithm>
#include <utility>

#include "src/base/signals.h"
#include "src/base/text.h"
#include "tests/simulation/describe.h"
#include "tests/simulation/world.h"

namespace elastic::simulation {

namespace {

const int kSigKill = *signal_number("KILL");

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

}  // namespace

void GuardianWord::connection_made(ConnectionId id) {
  world_.network().send(id, End::kClient, std::move(word_));
  world_.network().close(id, End::kClient);
}

Node::Node(World& world, int index, int host, NodeShape shape, Random random)
    : world_(world), index_(index), host_(host), shape_(std::move(shape)), random_(random),
      clock_(shape_.clock_offset_ms, shape_.clock_error) {}

Ms Node::local_ms() const { return clock_.local(world_.now_ms()); }

void Node::at_local(Ms local_ms, Timeline::Action action) {
  world_.timeline().at(clock_.when_shows(local_ms), std::move(action));
}

void Node::start() {
  if (process_.is_alive() || !world_.network().is_up(host_)) return;
  if (world_.network().is_frozen(host_)) return world_.timeline().after(100, [this] { start(); });
  process_.start();
  agent_id_ = random_.next() | 1;
  verdict_.reset();
  was_signalled_ = guardian_is_lost_ = false;
  awaiting_all_gone_ = false;
  connection_ = 0;
  ++timer_;
  ++link_timer_;
  coming_.clear();
  agent::NodeSettings settings{.local_world_size = shape_.workers,
                               .shutdown_timeout_ms = shape_.shutdown_timeout_ms,
                               .terminated_timeout_ms = shape_.shutdown_timeout_ms,
                               .logs = shape_.logs,
                               .agent = agent_id_,
                               .address = shape_.address,
                               .node_rank = shape_.claim,
                               .hosts_coordinator = shape_.hosts_coordinator,
                               .terms = shape_.terms,
                               .rules = shape_.rules,
                               .exit_barrier_ms = shape_.exit_barrier_ms};
  agent::LinkSettings link{.job = shape_.job,
                           .agent = agent_id_,
                           .secret = kSecret,
                           .join_timeout_ms = shape_.join_timeout_ms,
                           .rejoin_ms = shape_.rejoin_ms,
                           .seed = random_.next(),
                           .local = shape_.hosts_coordinator};
  agent_.emplace(std::move(settings), std::move(link));
  if (world_.trace().is_read()) world_.line(format("node {}: elastic-run starts, agent {:x}", index_, agent_id_));
  world_.agent_started(*this);
  tell(agent::Event{agent::Begin{}});
}

// --- The agent and what it wants done. -------------------------------------------------------------

void Node::tell(agent::AgentEvent event) {
  coming_.push_back(std::move(event));
  if (at_work_) return;
  at_work_ = true;
  const std::uint32_t launch = process_.launch();
  while (!coming_.empty() && process_.is_alive() && process_.launch() == launch) {
    const agent::AgentEvent next = std::move(coming_.front());
    coming_.pop_front();
    world_.trace().add(static_cast<std::uint64_t>(index_) << 8 | next.index());
    if (world_.trace().is_read()) world_.line_if(format("node {}: <- ", index_), text(next));
    agent::AgentEffects effects;
    try {
      effects = agent_->on_event(next, local_ms());
    } catch (...) {
      at_work_ = false;
      throw;
    }
    for (agent::AgentEffect& effect : effects) {
      if (!process_.is_alive() || process_.launch() != launch) break;
      carry_out(effect);
    }
    if (process_.is_alive() && process_.launch() == launch) tell_guardian();
  }
  at_work_ = false;
}

void Node::tell_later(Ms delay_ms, agent::AgentEvent event) {
  world_.timeline().after(delay_ms, [this, launch = process_.launch(), event = std::move(event)] {
    if (launch != process_.launch()) return;
    process_.run(false, [this, event] { tell(event); });
  });
}

void Node::carry_out(agent::AgentEffect& effect) {
  world_.trace().add(effect.index());
  std::visit(Overloaded{
                 [&](const agent::Effect& e) { carry_out_life(e); },
                 [&](const agent::Link::Connect&) { connection_ = world_.network().connect(host_, *this); world_.connects(connection_, *this); },
                 [&](const agent::Link::Disconnect&) {
                   if (connection_ != 0) world_.network().close(connection_, End::kClient);
                   connection_ = 0;
                 },
                 [&](agent::Link::Write& e) {
                   if (connection_ == 0) return;
                   world_.sniff(connection_, End::kClient, e.bytes);
                   if (connection_ == 0) return;  // of a fault that this has set off
                   world_.network().send(connection_, End::kClient, std::move(e.bytes));
                 },
                 [&](const agent::Link::Log& e) {
                   world_.trace().add(e.text);
                   if (world_.trace().is_read()) world_.line(format("node {}: {}", index_, e.text));
                 },
                 [&](const agent::StartLinkTimer& e) { start_timer(link_timer_, e.delay_ms, agent::LinkTimerFired{}); },
             },
             effect);
}

void Node::carry_out_life(const agent::Effect& effect) {
  world_.trace().add(effect.index());
  if (world_.trace().is_read()) world_.line_if(format("node {}: -> ", index_), text(effect));
  world_.agent_acts(*this, effect);
  if (!process_.is_alive()) return;  // of a fault that this has set off
  std::visit(Overloaded{
                 [&](const agent::ToCoordinator&) {},
                 [&](const agent::CheckNode& e) {
                   const bool bad = e.order == "probe" && !shape_.fit;
                   tell_later(random_.range(1, 30), agent::Event{agent::NodeChecked{e.round, e.phase, bad ? "bad" : "ok"}});
                 },
                 [&](const agent::OpenStore&) {
                   const protocol::StoreEndpoint store = world_.open_store(*this);
                   if (random_.chance(50)) return tell(agent::Event{agent::StoreOpened{store}});
                   tell_later(random_.range(0, 4), agent::Event{agent::StoreOpened{store}});
                 },
                 [&](const agent::CloseStore&) {},
                 [&](const agent::OpenLogs& e) { tell_later(random_.range(0, 3), agent::Event{agent::LogsOpened{e.round}}); },
                 [&](const agent::PrepareLogs&) {},
                 [&](const agent::GiveUpLogs&) {},
                 [&](const agent::StartWorkers& e) { start_workers(e); },
                 [&](const agent::SignalWorkers& e) { signal_workers(e.signal); },
                 [&](const agent::AwaitAllGone&) {
                   awaiting_all_gone_ = true;
                   all_gone_if_so();
                 },
                 [&](const agent::NameSurvivors&) { if (!workers_.empty()) tell(agent::Event{agent::SurvivorsNamed{"a worker"}}); },
                 [&](const agent::AbandonWorkers&) { awaiting_all_gone_ = false; },
                 [&](const agent::Paused&) {},
                 [&](const agent::StartTimer& e) { start_timer(timer_, e.delay_ms, agent::Event{agent::TimerFired{}}); },
                 [&](const agent::StopTimer&) { ++timer_; },
                 [&](const agent::Warn& e) { world_.trace().add(e.text); },
                 [&](const agent::Finish& e) { finish(e.verdict); },
             },
             effect);
}

void Node::start_timer(std::uint64_t& number, Ms delay_ms, agent::AgentEvent event) {
  at_local(local_ms() + delay_ms, [this, &number, mine = ++number, event = std::move(event)] {
    if (mine != number) return;
    process_.run(true, [this, &number, mine, event] {
      if (mine == number) tell(event);
    });
  });
}

void Node::start_workers(const agent::StartWorkers& order) {
  const protocol::Incarnation incarnation = agent_->link().own_incarnation();
  world_.workers_start(*this, order, incarnation);
  word_ = protocol::node_is_empty_frame({shape_.job, agent_id_, incarnation, agent_->link().term()}, order.round.round, kSecret);
  word_of_launch_ = process_.launch();
  for (int local_rank = 0; local_rank < shape_.workers; ++local_rank) {
    const WorkerId id = world_.workers().start(index_, process_.launch(), shape_.job, incarnation, order, local_rank);
    workers_.push_back(id);
    world_.worker_started(id);
    tell(agent::Event{agent::WorkerStarted{local_rank, 1000 + static_cast<std::int64_t>(id)}});
  }
}

void Node::signal_workers(int signal) {
  for (const WorkerId id : std::vector<WorkerId>(workers_)) {
    if (world_.workers().at(id).launch == process_.launch()) world_.workers().signal(id, signal);
  }
}

void Node::worker_ended(WorkerId id) {
  const Worker& worker = world_.workers().at(id);
  std::erase(workers_, id);
  guardian_speaks_if_empty();
  if (worker.launch != process_.launch() || !process_.is_alive()) return;
  const agent::WorkerExited exited{worker.local_rank, worker.exit, wall_offset_ms_ + world_.now_ms()};
  process_.run(false, [this, exited] {
    tell(agent::Event{exited});
    all_gone_if_so();
  });
}

void Node::all_gone_if_so() {
  if (!awaiting_all_gone_) return;
  for (const WorkerId id : workers_) {
    if (world_.workers().at(id).launch == process_.launch()) return;
  }
  awaiting_all_gone_ = false;
  tell(agent::Event{agent::AllGone{}});
}

void Node::finish(const protocol::Verdict& verdict) {
  verdict_ = verdict;
  if (world_.trace().is_read()) world_.line(format("node {}: is done: {}", index_, text(verdict)));
  if (connection_ != 0) world_.network().close(connection_, End::kClient);
  connection_ = 0;
  process_.end();
  world_.agent_finished(*this, verdict);
  guardian_lease_ms_.reset();
  ++guardian_timer_;
  if (shape_.hosts_coordinator) world_.hosting_node_left();
}

// --- The connection. -------------------------------------------------------------------------------

void Node::connection_made(ConnectionId id) {
  if (id != connection_) return;
  agent::LinkConnected connected;
  for (std::size_t i = 0; i < connected.nonce.size(); ++i) connected.nonce[i] = static_cast<std::uint8_t>(random_.next());
  process_.run(false, [this, id, connected] {
    if (id == connection_) tell(connected);
  });
}

void Node::connection_read(ConnectionId id, Bytes bytes) {
  if (id != connection_) return;
  ByteString copy(bytes.begin(), bytes.end());
  process_.run(false, [this, id, copy = std::move(copy)] {
    if (id == connection_) tell(agent::LinkReceived{copy});
  });
}

void Node::connection_broken(ConnectionId id, const std::string& why) {
  if (id != connection_) return;
  process_.run(false, [this, id, why] {
    if (id != connection_) return;
    connection_ = 0;
    tell(agent::LinkBroken{why});
  });
}

// --- The guardian. ---------------------------------------------------------------------------------

// After each event it is told until when the lease holds.
void Node::tell_guardian() {
  const auto lease_ms = agent_->lifecycle().needs_lease() ? agent_->link().lease_until_ms() : std::nullopt;
  if (lease_ms == guardian_lease_ms_) return;
  guardian_lease_ms_ = lease_ms;
  ++guardian_timer_;
  if (!lease_ms) return;
  at_local(*lease_ms, [this, mine = guardian_timer_] {
    if (mine == guardian_timer_ && !world_.network().is_frozen(host_) && world_.network().is_up(host_)) guardian_kills();
  });
}

void Node::guardian_kills() {
  if (world_.trace().is_read() && !workers_.empty()) world_.line(format("node {}: the guardian kills the workers", index_));
  for (const WorkerId id : std::vector<WorkerId>(workers_)) world_.workers().signal(id, kSigKill);
}

void Node::guardian_speaks_if_empty() {
  if (!guardian_waits_to_speak_ || !workers_.empty()) return;
  guardian_waits_to_speak_ = false;
  if (!world_.shape().guardian_speaks || word_.empty() || world_.network().is_frozen(host_)) return;
  words_.push_back(std::make_unique<GuardianWord>(world_, std::exchange(word_, {})));
  if (world_.trace().is_read()) world_.line(format("node {}: the guardian says that no worker is left", index_));
  (void)world_.network().connect(host_, *words_.back());
}

// --- Faults. ---------------------------------------------------------------------------------------

void Node::crash_agent() {
  if (!process_.is_alive()) return;
  if (world_.trace().is_read()) world_.line(format("node {}: the agent dies", index_));
  process_.end();
  world_.agent_died(*this);
  if (connection_ != 0) world_.network().close(connection_, End::kClient);
  connection_ = 0;
  guardian_lease_ms_.reset();
  ++guardian_timer_;
  guardian_waits_to_speak_ = word_of_launch_ == process_.launch();
  world_.timeline().after(random_.range(1, 4), [this] {
    if (!world_.network().is_up(host_)) return;
    guardian_kills();
    guardian_speaks_if_empty();
  });
}

void Node::crash_guardian() {
  if (!process_.is_alive()) return;
  if (world_.trace().is_read()) world_.line(format("node {}: the guardian dies", index_));
  guardian_is_lost_ = true;
  guardian_lease_ms_.reset();
  ++guardian_timer_;
  process_.run(false, [this] { tell(agent::Event{agent::GuardianLost{}}); });
}

void Node::crash_host() {
  if (!world_.network().is_up(host_)) return;
  if (world_.trace().is_read()) world_.line(format("node {}: the host dies", index_));
  process_.end();
  world_.agent_died(*this);
  connection_ = 0;
  guardian_lease_ms_.reset();
  ++guardian_timer_;
  guardian_waits_to_speak_ = false;
  word_.clear();
  for (const WorkerId id : std::exchange(workers_, {})) world_.workers().vanish(id);
  world_.network().host_down(host_);
}

void Node::boot_host() {
  if (world_.network().is_up(host_)) return;
  if (world_.trace().is_read()) world_.line(format("node {}: the host is up again", index_));
  world_.network().host_up(host_);
}

void Node::pause_agent() {
  if (process_.is_alive()) process_.pause();
}

void Node::resume_agent() {
  if (process_.is_alive() && process_.is_paused()) process_.resume(random_.chance(50));
}

void Node::freeze() {
  if (!world_.network().is_up(host_)) return;
  world_.network().freeze(host_);
  if (process_.is_alive()) process_.pause();
  for (const WorkerId id : workers_) world_.workers().freeze(id);
}

void Node::thaw() {
  if (!world_.network().is_up(host_) || !world_.network().is_frozen(host_)) return;
  world_.network().thaw(host_);
  if (world_.network().is_frozen(host_)) return;
  for (const WorkerId id : std::vector<WorkerId>(workers_)) world_.workers().thaw(id);
  // The guardian looks at the clock as soon as it runs, and so does the agent.
  const bool over = guardian_lease_ms_ && local_ms() >= *guardian_lease_ms_;
  const bool orphaned = !process_.is_alive() && !workers_.empty();
  if (over || orphaned) world_.timeline().after(random_.range(0, 3), [this] { guardian_kills(); });
  world_.host_thawed(*this);
  if (process_.is_alive()) process_.resume(random_.chance(50));
}

void Node::signal(int signal) {
  if (!process_.is_alive()) return;
  if (world_.trace().is_read()) world_.line(format("node {}: gets {}", index_, signal_name(signal)));
  was_signalled_ = true;
  process_.run(false, [this, signal] { tell(agent::Event{agent::SignalReceived{signal}}); });
}

void Node::crash_worker(int local_rank, ExitStatus exit) {
  for (const WorkerId id : workers_) {
    const Worker& worker = world_.workers().at(id);
    if (worker.local_rank % shape_.workers != local_rank % shape_.workers || worker.launch != process_.launch()) continue;
    if (world_.trace().is_read()) world_.line(format("node {}: worker {} fails", index_, local_rank));
    return world_.workers().fail(id, exit);
  }
}

}  // namespace elastic::simulation
