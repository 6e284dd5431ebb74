#include "tests/simulation/node.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "rendezvous/protocol/random_id.h"
#include "src/base/overloaded.h"
#include "src/base/signals.h"
#include "src/base/text.h"
#include "tests/simulation/describe.h"
#include "tests/simulation/meter.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

namespace {

// The bounds of docs/architecture.md, by a clock that is slow by 1 %: the longest pause between two attempts, and how
// long an attempt may stay without an answer.
constexpr Ms kLongestPauseMs = 2020;
constexpr Ms kUnansweredMs = 5050;
// How long an elastic-run waits for the removal of its entry.
constexpr Ms kWithdrawMs = 1000;
constexpr const char* kRefused = "connection refused";  // as Network says it

}  // namespace

void GuardianWord::connection_made(ConnectionId id) {
  simulation_.network().send(id, End::kClient, std::move(word_));
  simulation_.network().close(id, End::kClient);
}

Node::Node(Simulation& simulation, int index, int host, NodeSetup setup, Random random)
    : simulation_(simulation),
      index_(index),
      host_(host),
      setup_(std::move(setup)),
      random_(random),
      clock_(setup_.clock_offset_ms, setup_.clock_error) {}

Ms Node::local_ms() const { return clock_.local(simulation_.now_ms()); }

void Node::at_local(Ms local_ms, Action action) {
  simulation_.timeline().at(clock_.when_shows(local_ms), std::move(action));
}

void Node::start() {
  if (is_running() || !simulation_.network().is_up(host_)) return;
  if (simulation_.network().is_frozen(host_)) return simulation_.timeline().after(100, [this] { start(); });
  if (serves_others_) leave();
  process_.start();
  agent_id_ = protocol::random_id(random_.next());
  job_result_.reset();
  was_signalled_ = guardian_is_lost_ = false;
  awaiting_all_gone_ = false;
  connection_ = 0;
  peer_facts_ = {};
  at_home_ = setup_.hosts_coordinator;
  trying_ = serves_others_ = false;
  ++timer_;
  ++link_timer_;
  coming_.clear();
  agent::NodeSettings settings{.local_world_size = setup_.workers,
                               .shutdown_timeout_ms = setup_.shutdown_timeout_ms,
                               .terminated_timeout_ms = setup_.shutdown_timeout_ms,
                               .logs = setup_.logs,
                               .agent = agent_id_,
                               .address = setup_.address,
                               .addresses = has_peer_server() ? setup_.address : "",
                               .node_rank = setup_.claimed_rank,
                               .hosts_coordinator = false,  // until the connection says so
                               .coordinator_may_move = server_ != nullptr,
                               .terms = setup_.terms,
                               .rules = setup_.rules,
                               .check = setup_.check,
                               .exit_barrier_ms = setup_.exit_barrier_ms,
                               .shares_details = true,
                               .tells_crashes = setup_.tells_crashes};
  agent::LinkSettings link{.job = setup_.job,
                           .agent = agent_id_,
                           .secret = kSecret,
                           .join_timeout_ms = setup_.join_timeout_ms,
                           .rejoin_ms = setup_.rejoin_ms,
                           .seed = random_.next()};
  if (entries_ != nullptr) {
    const auto found = [this](const discovery::EntrySearch::Found& there) {
      may_begin_ = there.may_begin;
      trying_ = true;
      connect(there.place.port, there.is_own);
    };
    const auto not_found = [this](const std::string& problem) {
      reach_.has_failed(simulation_.now_ms());
      on(agent::LinkBroken{problem});
    };
    discovery_ = std::make_unique<FileDiscovery>(simulation_, *this, *server_, *entries_,
                                                 FileDiscovery::Handlers{found, not_found});
  }
  {
    const Running running(Part::kAgent);
    agent_.emplace(std::move(settings), std::move(link));
  }
  if (simulation_.trace().is_read())
    simulation_.line(format("node {}: elastic-run starts, agent {:x}", index_, agent_id_));
  if (has_peer_server()) server_->open_peer_server(setup_.job, agent_id_);
  simulation_.process_changes();
  reach_.begin(simulation_.now_ms());
  link_is_over_ = false;
  chance_.reset();
  simulation_.agent_started(*this);
  on(agent::Event{agent::Begin{}});
}

// --- The agent's events and effects. ---------------------------------------------------------------

void Node::on(agent::AgentEvent event) {
  if (at_work_) return coming_.push_back(std::move(event));
  if (!process_.is_alive()) return;
  at_work_ = true;
  const std::uint32_t launch = process_.launch();
  on(event, launch);
  while (!coming_.empty() && process_.is_alive() && process_.launch() == launch) {
    const agent::AgentEvent next = std::move(coming_.front());
    coming_.pop_front();
    on(next, launch);
  }
  at_work_ = false;
}

void Node::on(const agent::AgentEvent& event, std::uint32_t launch) {
  simulation_.trace().add(static_cast<std::uint64_t>(index_) << 8 | event.index());
  if (simulation_.trace().is_read()) simulation_.line_if(format("node {}: <- ", index_), text(event));
  agent::AgentEffects effects;
  {
    const Running running(Part::kAgent);
    effects = agent_->on_event(event, local_ms());
  }
  watch_link();
  for (agent::AgentEffect& effect : effects) {
    if (!process_.is_alive() || process_.launch() != launch) return;
    perform(effect);
  }
  if (!process_.is_alive() || process_.launch() != launch) return;
  tell_guardian();
  renew_peer_facts();
  const bool has_coordinator = server_ != nullptr && server_->find(setup_.job) != nullptr;
  if (has_peer_server() && agent_->link().votes_for_own() && !has_coordinator) on(agent::OwnCoordinatorOver{});
}

void Node::on_later(Ms delay_ms, agent::AgentEvent event) {
  simulation_.timeline().after(delay_ms, [this, launch = process_.launch(), event = std::move(event)]() mutable {
    if (launch != process_.launch()) return;
    process_.run(false, [this, event = std::move(event)]() mutable { on(std::move(event)); });
  });
}

template <class Fired>
void Node::start_timer(std::uint64_t& number, Ms delay_ms) {
  at_local(local_ms() + delay_ms, [this, &number, mine = ++number] {
    if (mine != number) return;
    process_.run(true, [this, &number, mine] {
      if (mine != number) return;
      if constexpr (std::is_same_v<Fired, agent::TimerFired>)
        on(agent::Event{Fired{}});
      else
        on(Fired{});
    });
  });
}

void Node::perform(agent::AgentEffect& effect) {
  simulation_.trace().add(effect.index());
  std::visit(Overloaded{
                 [&](const agent::Effect& e) { perform(e); },
                 [&](const agent::Link::Connect& e) { look_for_coordinator(e); },
                 [&](const agent::Link::Disconnect& e) {
                   reach_.has_failed(simulation_.now_ms());
                   has_tried(e.is_stranger  ? discovery::Tried::kStranger
                             : is_answered_ ? discovery::Tried::kAnswered
                                            : discovery::Tried::kSilent);
                   if (discovery_) discovery_->stop();
                   if (connection_ != 0) simulation_.network().close(connection_, End::kClient);
                   connection_ = 0;
                 },
                 [&](agent::Link::Write& e) {
                   if (connection_ == 0) return;
                   simulation_.sniff(connection_, End::kClient, e.bytes);
                   if (connection_ == 0) return;  // this frame has triggered a fault
                   simulation_.network().send(connection_, End::kClient, std::move(e.bytes));
                 },
                 [&](const agent::Link::Deliver&) {},
                 [&](const agent::Link::Log& e) {
                   simulation_.trace().add(e.text);
                   if (simulation_.trace().is_read()) simulation_.line(format("node {}: {}", index_, e.text));
                 },
                 [&](const agent::StartLinkTimer& e) { start_timer<agent::LinkTimerFired>(link_timer_, e.delay_ms); },
             },
             effect);
}

void Node::perform(const agent::Effect& effect) {
  simulation_.trace().add(effect.index());
  if (simulation_.trace().is_read()) simulation_.line_if(format("node {}: -> ", index_), text(effect));
  simulation_.agent_acts(*this, effect);
  if (!process_.is_alive()) return;  // this effect has triggered a fault
  std::visit(
      Overloaded{
          [&](const agent::ToCoordinator&) {},
          [&](const agent::CheckNode& e) {
            const char* found = e.order != "probe" ? "ok" : !setup_.fit ? "bad" : setup_.slow ? "slow" : "ok";
            on_later(random_.range(1, 30), agent::Event{agent::NodeChecked{e.round, e.phase, found}});
          },
          [&](const agent::OpenStore&) {
            const protocol::StoreEndpoint store = simulation_.open_store(*this);
            if (random_.chance(50)) return on(agent::Event{agent::StoreOpened{store}});
            on_later(random_.range(0, 4), agent::Event{agent::StoreOpened{store}});
          },
          [&](const agent::CloseStore&) {},
          [&](const agent::OpenLogs& e) { on_later(random_.range(0, 3), agent::Event{agent::LogsOpened{e.round}}); },
          [&](const agent::LookAtSegment&) {},  // there is no such file
          [&](const agent::PrepareLogs&) {},
          [&](const agent::GiveUpLogs&) {},
          [&](const agent::StartWorkers& e) { start_workers(e); },
          [&](const agent::SignalWorkers& e) { signal_workers(e.signal); },
          [&](const agent::AwaitAllGone&) {
            awaiting_all_gone_ = true;
            all_gone_if_so();
          },
          [&](const agent::NameSurvivors&) {
            if (!workers_.empty()) on(agent::Event{agent::SurvivorsNamed{"a worker"}});
          },
          [&](const agent::FindBackground&) { on(agent::Event{agent::BackgroundFound{}}); },
          [&](const agent::LeaveBackground&) {},
          [&](const agent::AbandonWorkers&) { awaiting_all_gone_ = false; },
          [&](const agent::Paused&) {},
          [&](const agent::StartTimer& e) { start_timer<agent::TimerFired>(timer_, e.delay_ms); },
          [&](const agent::StopTimer&) { ++timer_; },
          [&](const agent::Warn& e) {
            simulation_.trace().add(e.text);
            if (e.event == "lease_over") reach_.lease_is_over(simulation_.now_ms());
            if (e.event == "drained") was_signalled_ = true;
          },
          [&](const agent::GatherDetails&) { gather_details(); },
          [&](const agent::FindCrash& e) { find_crash(e.round); },
          [&](const agent::CollectStacks& e) { collect_stacks(e.collection); },
          [&](const agent::Finish& e) { finish(e); },
          [&](const agent::ReadEvidence& e) { read_evidence(e.order); },
          [&](const agent::StopEvidence&) { ++reading_; },
          [&](const agent::AwaitDumps& e) { on(agent::Event{agent::DumpsAwaited{e.round}}); },
          [&](const agent::TellHang&) {},
          [&](const agent::TellHangOver&) {},
          [&](const agent::HearLoader&) {},
      },
      effect);
}

void Node::start_workers(const agent::StartWorkers& order) {
  const protocol::Incarnation incarnation = agent_->link().own_incarnation();
  simulation_.workers_start(*this, order, incarnation);
  word_ = Word{agent_id_, incarnation, agent_->link().term(), order.round.round, listeners()};
  word_of_launch_ = process_.launch();
  for (int local_rank = 0; local_rank < setup_.workers; ++local_rank) {
    const WorkerId id =
        simulation_.workers().start(index_, process_.launch(), setup_.job, incarnation, order, local_rank);
    workers_.push_back(id);
    simulation_.worker_started(id);
    on(agent::Event{agent::WorkerStarted{local_rank, 1000 + static_cast<std::int64_t>(id)}});
  }
}

void Node::signal_workers(int signal) {
  for (const WorkerId id : std::vector<WorkerId>(workers_)) {
    if (simulation_.workers().at(id).launch == process_.launch()) simulation_.workers().signal(id, signal);
  }
}

void Node::worker_ended(WorkerId id) {
  const Worker& worker = simulation_.workers().at(id);
  std::erase(workers_, id);
  guardian_speaks_if_empty();
  if (worker.launch != process_.launch() || !process_.is_alive()) return;
  const agent::WorkerExited exited{worker.local_rank, worker.exit, wall_offset_ms_ + simulation_.now_ms()};
  process_.run(false, [this, exited] {
    on(agent::Event{exited});
    all_gone_if_so();
  });
}

void Node::all_gone_if_so() {
  if (!awaiting_all_gone_) return;
  for (const WorkerId id : workers_) {
    if (simulation_.workers().at(id).launch == process_.launch()) return;
  }
  awaiting_all_gone_ = false;
  on(agent::Event{agent::AllGone{}});
}

void Node::finish(const agent::Finish& end) {
  job_result_ = end.job_result;
  if (simulation_.trace().is_read())
    simulation_.line(format("node {}: is done: {} ({})", index_, text(end.job_result), end.details));
  if (connection_ != 0) simulation_.network().close(connection_, End::kClient);
  connection_ = 0;
  serves_others_ = server_ != nullptr && server_->is_up() && !guardian_is_lost_;
  if (!serves_others_) process_.end();
  simulation_.process_changes();
  simulation_.agent_finished(*this, end);
  guardian_lease_ms_.reset();
  ++guardian_timer_;
  if (setup_.hosts_coordinator) simulation_.hosting_node_left();
  if (serves_others_) return serve_others();
  if (server_ != nullptr) server_->crash();
}

// Other nodes may still need the coordinator in this process. Then the entry is removed that leads to it.
void Node::serve_others() {
  const std::uint32_t launch = process_.launch();
  server_->agent_has_ended();
  server_->when_idle([this, launch] {
    in_process(launch, false, [this, launch] {
      simulation_.timeline().after(kWithdrawMs, [this, launch] {
        if (launch == process_.launch()) leave();
      });
      const transport::Service& service = *server_->service();
      if (!discovery_ || !service.only_ends() || service.leaves_to_others(setup_.job)) return leave();
      discovery_->withdraw([this] { leave(); });
    });
  });
}

void Node::leave() {
  if (!serves_others_) return;
  process_.end();
  serves_others_ = false;
  server_->crash();
}

// --- The connection. -------------------------------------------------------------------------------

void Node::look_for_coordinator(const agent::Link::Connect& effect) {
  reach_.tries(simulation_.now_ms());
  may_begin_ = true;
  if (effect.to) return connect(effect.to->port, effect.to->agent == agent_id_);
  if (!discovery_) {
    const Server& asked = simulation_.endpoint(attempts_++);
    return connect(asked.listener(), setup_.hosts_coordinator || &asked == server_);
  }
  discovery_->find({agent_->link().own_incarnation() != 0, agent_->link().term() != 0});
}

void Node::connect(ListenerId to, bool is_home) {
  at_home_ = is_home;
  is_answered_ = false;
  connects_to_ = to;
  connection_ = simulation_.network().connect(host_, *this, to);
  simulation_.connects(connection_, *this, to);
}

void Node::renew_peer_facts() {
  if (!has_peer_server() || !server_->is_up()) return;
  const agent::Link& link = agent_->link();
  transport::PeerFacts facts{
      .job = setup_.job, .opens_ms = link.may_elect_from_ms(local_ms()), .belongs = link.may_be_in_round()};
  if (link.hears_coordinator(local_ms()) && !at_home_) {
    facts.addresses = setup_.address;  // the port says where
    facts.port = static_cast<std::uint16_t>(connects_to_);
    facts.term = link.term();
  }
  if (facts == std::exchange(peer_facts_, facts)) return;
  server_->set_peer_facts(facts);
}

void Node::has_tried(discovery::Tried how) {
  if (std::exchange(trying_, false)) discovery_->tried(how);
}

void Node::connection_made(ConnectionId id) {
  if (id != connection_) return;
  agent::LinkConnected connected{.local = at_home_, .may_begin = may_begin_};
  if (has_peer_server()) connected.peer_port = static_cast<std::uint16_t>(server_->listener());
  for (std::size_t i = 0; i < connected.nonce.size(); ++i)
    connected.nonce[i] = static_cast<std::uint8_t>(random_.next());
  process_.run(false, [this, id, connected] {
    if (id == connection_) on(connected);
  });
}

void Node::connection_read(ConnectionId id, ByteString bytes) {
  if (id != connection_) return;
  process_.run(false, [this, id, bytes = std::move(bytes)]() mutable {
    if (id != connection_) return;
    is_answered_ = true;
    on(agent::LinkReceived{std::move(bytes)});
  });
}

void Node::connection_broken(ConnectionId id, const std::string& why) {
  if (id != connection_) return;
  process_.run(false, [this, id, why] {
    if (id != connection_) return;
    connection_ = 0;
    reach_.has_failed(simulation_.now_ms());
    has_tried(why == kRefused ? discovery::Tried::kRefused
              : is_answered_  ? discovery::Tried::kAnswered
                              : discovery::Tried::kSilent);
    on(agent::LinkBroken{why, why == kRefused});
  });
}

void Node::lead_changes() {
  if (discovery_) discovery_->look_at_entry();
}

void Node::way_is_open(bool open) { reach_.is_open(open, simulation_.now_ms()); }

void Node::connection_is_disturbed() { reach_.is_disturbed(simulation_.now_ms()); }

// Judges whether the link could still have reached the coordinator when it gives up.
void Node::watch_link() {
  const agent::Link& link = agent_->link();
  const Ms now_ms = simulation_.now_ms();
  if (link.attached()) reach_.attached(now_ms);
  if (std::exchange(was_attached_, link.attached()) && !was_attached_) lost_ms_ = now_ms;
  reach_.is_free(workers_.empty() || agent_->lifecycle().is_idle() || agent_->lifecycle().has_job_result(), now_ms);
  if (link_is_over_ || link.next_deadline_ms({})) return;
  link_is_over_ = true;
  const bool belongs = link.own_incarnation() != 0;
  if (has_peer_server()) {  // it may have found candidates only
    const Ms long_enough_ms =
        2 * simulation_.setup().loss_timeout_ms + 4'000 + 100 * simulation_.network().longest_way_ms();
    if (belongs && !simulation_.setup().peer_ports_are_shut)
      chance_ = simulation_.company().chance(*this, now_ms - long_enough_ms);
    return;
  }
  if (belongs) {  // it has looked for a lease, or, from when it noticed the loss, until its lease was over
    const Ms lease_ms = protocol::LeaseTimes{simulation_.setup().loss_timeout_ms}.lease_ms();
    chance_ = reach_.chance(std::max(lost_ms_, now_ms - lease_ms * 99 / 100), now_ms, times());
    return;
  }
  const Ms patience_ms = setup_.join_timeout_ms * 99 / 100;
  if (now_ms - reach_.since_ms() < patience_ms) {
    chance_ =
        format("it has looked for the coordinator for {} ms instead of {} ms", now_ms - reach_.since_ms(), patience_ms);
  } else {
    chance_ = reach_.chance(now_ms - patience_ms, now_ms, times());
  }
}

Reach::Times Node::times() const {
  return {.attempt_ms = 6 * simulation_.network().longest_way_ms() + 20,
          .pause_ms = kLongestPauseMs,
          .unanswered_ms = kUnansweredMs};
}

bool Node::is_cut_off_since(Ms from_ms) const { return reach_.is_cut_off(from_ms, simulation_.now_ms(), times()); }

// --- The guardian. ---------------------------------------------------------------------------------

// The guardian is told after each event until when the lease holds.
void Node::tell_guardian() {
  if (guardian_is_lost_) return;
  const auto lease_ms = agent_->lifecycle().needs_lease() ? agent_->link().lease_until_ms() : std::nullopt;
  if (lease_ms == guardian_lease_ms_) return;
  guardian_lease_ms_ = lease_ms;
  ++guardian_timer_;
  if (!lease_ms) return;
  at_local(*lease_ms, [this, mine = guardian_timer_] {
    if (mine == guardian_timer_ && !simulation_.network().is_frozen(host_) && simulation_.network().is_up(host_))
      guardian_kills();
  });
}

void Node::guardian_kills() {
  if (simulation_.trace().is_read() && !workers_.empty())
    simulation_.line(format("node {}: the guardian kills the workers", index_));
  for (const WorkerId id : std::vector<WorkerId>(workers_)) simulation_.workers().signal(id, SIGKILL);
}

// A coordinator on this node ends with it: the next leaders are told.
std::vector<ListenerId> Node::listeners() const {
  if (!has_peer_server() || !at_home_) return {connects_to_};
  std::vector<ListenerId> out;
  for (const protocol::NextLeader& next_leader : agent_->link().follower().next_leaders()) {
    if (next_leader.agent != agent_id_) out.push_back(static_cast<ListenerId>(next_leader.port));
  }
  return out;
}

void Node::guardian_speaks_if_empty() {
  if (!guardian_waits_to_speak_ || !workers_.empty()) return;
  guardian_waits_to_speak_ = false;
  if (!simulation_.setup().guardian_speaks || !word_ || simulation_.network().is_frozen(host_)) return;
  const Word& word = *word_;
  for (const ListenerId to : word.to) {
    words_.push_back(std::make_unique<GuardianWord>(
        simulation_,
        protocol::node_is_empty_frame({setup_.job, word.agent, word.incarnation, word.term}, word.round, kSecret)));
    (void)simulation_.network().connect(host_, *words_.back(), to);
  }
  if (simulation_.trace().is_read())
    simulation_.line(format("node {}: the guardian says that no worker is left", index_));
  word_.reset();
}

// --- Faults. ---------------------------------------------------------------------------------------

void Node::crash_agent() {
  if (!process_.is_alive()) return;
  if (simulation_.trace().is_read()) simulation_.line(format("node {}: the agent dies", index_));
  process_.end();
  if (server_ != nullptr) server_->crash();
  simulation_.process_changes();
  simulation_.agent_died(*this);
  if (connection_ != 0) simulation_.network().close(connection_, End::kClient);
  connection_ = 0;
  guardian_lease_ms_.reset();
  ++guardian_timer_;
  guardian_waits_to_speak_ = !guardian_is_lost_ && word_of_launch_ == process_.launch();
  if (guardian_is_lost_) simulation_.workers_can_be_killed(*this);
  // Without a guardian the kernel kills the workers (PR_SET_PDEATHSIG).
  simulation_.timeline().after(random_.range(1, 4), [this] {
    if (!simulation_.network().is_up(host_)) return;
    guardian_kills();
    guardian_speaks_if_empty();
  });
}

void Node::crash_guardian() {
  if (!process_.is_alive() || guardian_is_lost_) return;
  if (simulation_.trace().is_read()) simulation_.line(format("node {}: the guardian dies", index_));
  guardian_is_lost_ = true;
  guardian_lease_ms_.reset();
  ++guardian_timer_;
  process_.run(false, [this] { on(agent::Event{agent::GuardianLost{}}); });
}

void Node::crash_host() {
  if (!simulation_.network().is_up(host_)) return;
  if (simulation_.trace().is_read()) simulation_.line(format("node {}: the host dies", index_));
  process_.end();
  serves_others_ = false;
  if (server_ != nullptr && server_->is_up()) server_->vanish();
  simulation_.agent_died(*this);
  connection_ = 0;
  guardian_lease_ms_.reset();
  ++guardian_timer_;
  guardian_waits_to_speak_ = false;
  word_.reset();
  for (const WorkerId id : std::exchange(workers_, {})) simulation_.workers().vanish(id);
  simulation_.network().host_down(host_);
}

void Node::boot_host() {
  if (simulation_.network().is_up(host_)) return;
  if (simulation_.trace().is_read()) simulation_.line(format("node {}: the host is up again", index_));
  simulation_.network().host_up(host_);
}

void Node::pause_agent() {
  simulation_.process_changes();
  if (!process_.is_alive()) return;
  process_.pause();
  if (server_ != nullptr && server_->is_up()) server_->pause();
}

void Node::resume_agent() {
  simulation_.process_changes();
  if (!process_.is_alive() || !process_.is_paused()) return;
  if (guardian_is_lost_) simulation_.workers_can_be_killed(*this);
  const bool timers_first = random_.chance(50);
  if (server_ != nullptr && server_->is_up()) server_->resume(timers_first);
  process_.resume(timers_first);
}

void Node::freeze() {
  if (!simulation_.network().is_up(host_)) return;
  simulation_.network().freeze(host_);
  if (process_.is_alive()) process_.pause();
  if (server_ != nullptr && server_->is_up()) server_->pause();
  for (const WorkerId id : workers_) simulation_.workers().freeze(id);
}

void Node::thaw() {
  if (!simulation_.network().is_up(host_) || !simulation_.network().is_frozen(host_)) return;
  simulation_.network().thaw(host_);
  if (simulation_.network().is_frozen(host_)) return;
  for (const WorkerId id : std::vector<WorkerId>(workers_)) simulation_.workers().thaw(id);
  // The guardian checks the clock as soon as it runs, and so does the agent.
  const bool over = guardian_lease_ms_ && local_ms() >= *guardian_lease_ms_;
  const bool orphaned = !process_.is_alive() && !workers_.empty();
  if (over || orphaned) simulation_.timeline().after(random_.range(0, 3), [this] { guardian_kills(); });
  simulation_.workers_can_be_killed(*this);
  const bool timers_first = random_.chance(50);
  if (server_ != nullptr && server_->is_up()) server_->resume(timers_first);
  if (process_.is_alive()) process_.resume(timers_first);
}

void Node::signal(int signal) {
  if (!process_.is_alive()) return;
  if (simulation_.trace().is_read()) simulation_.line(format("node {}: gets {}", index_, signal_name(signal)));
  was_signalled_ = true;
  process_.run(false, [this, signal] { on(agent::Event{agent::SignalReceived{signal}}); });
}

void Node::crash_worker(int local_rank, ExitStatus exit) {
  for (const WorkerId id : workers_) {
    const Worker& worker = simulation_.workers().at(id);
    if (worker.local_rank % setup_.workers != local_rank % setup_.workers || worker.launch != process_.launch())
      continue;
    if (simulation_.trace().is_read()) simulation_.line(format("node {}: worker {} fails", index_, local_rank));
    return simulation_.workers().fail(id, exit);
  }
}

}  // namespace elastic::simulation
