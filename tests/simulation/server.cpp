#include "tests/simulation/server.h"

#include <algorithm>
#include <utility>

#include "health/stacks/document.h"
#include "rendezvous/protocol/random_id.h"
#include "rendezvous/trace/recording.h"
#include "src/base/text.h"
#include "tests/simulation/meter.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

namespace {

class PlannedCheck : public health::CheckPlan {
 public:
  explicit PlannedCheck(int phases) : phases_(phases) {}
  int phases(const std::vector<health::CheckNode>& nodes, const health::CheckRules&) const override {
    const bool all_passed = std::ranges::all_of(nodes, [](const health::CheckNode& node) { return node.passed; });
    return all_passed ? 0 : phases_;
  }
  std::vector<std::string> orders(std::uint32_t phase, const std::vector<health::CheckNode>& nodes,
                                  const std::vector<health::CheckResults>& earlier,
                                  const health::CheckRules&) const override {
    std::vector<std::string> orders;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      if (earlier.size() != phase) return {};
      orders.push_back(nodes[rank].passed ? "rest" : "probe");
    }
    return orders;
  }
  std::vector<Unhealthy> unhealthy(const std::vector<health::CheckNode>& nodes,
                                   const std::vector<health::CheckResults>& results) const override {
    std::vector<Unhealthy> unhealthy;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      const auto some = [&](const char* word) {
        return std::ranges::any_of(results, [&](const auto& phase) { return phase.at(rank) == word; });
      };
      if (some("bad"))
        unhealthy.push_back({static_cast<int>(rank), "its probe failed"});
      else if (some("slow"))
        unhealthy.push_back({static_cast<int>(rank), "its probe is slow", Unhealthy::Kind::kStraggler});
    }
    return unhealthy;
  }

 private:
  int phases_;
};

}  // namespace

std::unique_ptr<health::CheckPlan> make_check(int phases) {
  if (phases == 0) return health::no_check();
  return std::make_unique<PlannedCheck>(phases);
}

// A peer port has the clock of its node.
Ms Server::now_ms() const { return node_ != nullptr ? node_->local_ms() : simulation_.now_ms(); }

void Server::start() {
  serve({.lease = {simulation_.setup().loss_timeout_ms},
         .secret = kSecret,
         .own_process = protocol::NextLeader{protocol::random_id(random_.next()), -1, "10.9.9.9",
                                             static_cast<std::uint16_t>(listener_)},
         .random = [this] { return random_.next(); },
         .wall_ms = [this] { return simulation_.wall_ms(); },
         .make_check = [this](const std::string&) { return make_recorded_check(); }});
}

void Server::open_peer_server(const std::string& job, protocol::AgentId own) {
  if (!is_at_endpoint_) listener_ = simulation_.network().add_listener(node_->host(), *this);
  job_ = job;
  own_ = own;
  may_begin_ = is_at_endpoint_;
  serve_peer_port();
}

void Server::serve_peer_port() {
  serve({.lease = {simulation_.setup().loss_timeout_ms},
         .secret = kSecret,
         .only_job = is_at_endpoint_ ? "" : job_,
         .own_agent = own_,
         .is_peer_server = !may_begin_,
         .random = [this] { return random_.next(); },
         .wall_ms = [this] { return simulation_.wall_ms(); },
         .make_check = [this](const std::string&) { return make_recorded_check(); }});
}

bool Server::begin_jobs(bool may_begin) {
  if (may_begin == may_begin_) return true;
  if (!service_ || service_->jobs() > 0) return false;
  crash();
  may_begin_ = may_begin;
  serve_peer_port();
  return true;
}

std::optional<discovery::Entry> Server::entry() const {
  auto entry = service_ ? service_->entry(job_, now_ms()) : std::nullopt;
  if (!entry) return {};
  entry->host = node_->setup().address;
  entry->leader = {node_->setup().address, static_cast<std::uint16_t>(listener_)};
  return entry;
}

void Server::gossip_at(ListenerId where) {
  auto what = service_ ? service_->gossip(job_) : std::nullopt;
  if (what && !simulation_.setup().peer_ports_are_shut) gossip(*std::move(what), where);
}

void Server::serve(transport::ServiceSettings settings) {
  process_.start();
  started_ms_ = simulation_.now_ms();
  timer_at_ms_.reset();
  ++timer_;
  gossips_ = false;
  when_idle_ = nullptr;
  askers_.clear();
  {
    const Running running(Part::kCoordinator);
    service_.emplace(std::move(settings), now_ms());
  }
  service_->recorder = [this](const std::string& job, const coordinator::Event& event, std::int64_t now_ms) {
    const Running running(Part::kSimulator);
    simulation_.coordinator_takes(*this, job, event, now_ms);
  };
  simulation_.invariants().knowledge_is_lost();
  simulation_.network().listen(listener_, true);
  simulation_.trace().add(1);
  if (simulation_.trace().is_read()) simulation_.line(format("{}: starts", name()));
}

void Server::when_idle(std::function<void()> done) {
  if (!service_ || service_->connections() == 0) return done();
  when_idle_ = std::move(done);
}

std::unique_ptr<health::CheckPlan> Server::make_recorded_check() {
  auto plan = make_check(simulation_.setup().check_phases);
  Recorder* const recorder = simulation_.recorder();
  if (recorder == nullptr || simulation_.setup().check_phases == 0) return plan;
  return trace::recorded_check(std::move(plan), [recorder](const std::string& line) { recorder->answered(line); });
}

void Server::crash() {
  if (!is_up()) return;
  end();
  simulation_.network().close_all_of(listener_);
}

void Server::vanish() {
  simulation_.company().falls_silent(*this);
  end();
}

void Server::end() {
  process_.end();
  simulation_.network().listen(listener_, false);
  ++timer_;
  service_.reset();
  when_idle_ = nullptr;
  askers_.clear();
  simulation_.coordinator_is_gone(*this);
}

std::string Server::name() const {
  return node_ != nullptr ? format("coordinator of node {}", node_->index()) : "coordinator";
}

void Server::pause() {
  simulation_.company().falls_silent(*this);
  simulation_.process_changes();
  process_.pause();
  for (auto& [ticket, until_ms] : askers_) until_ms.reset();
}

void Server::resume(bool timers_first) {
  simulation_.process_changes();
  process_.resume(timers_first);
}

void Server::connection_made(ConnectionId id) {
  const transport::ConnectionOpened opened{.connection = id, .nonce = nonce()};
  process_.run(false, [this, opened] { on(opened); });
}

protocol::Nonce Server::nonce() {
  protocol::Nonce nonce{};
  for (std::size_t i = 0; i < nonce.size(); i += 8) {
    const std::uint64_t word = random_.next();
    for (std::size_t k = 0; k < 8; ++k) nonce[i + k] = static_cast<std::uint8_t>(word >> (8 * k));
  }
  return nonce;
}

void Server::connection_read(ConnectionId id, ByteString bytes) {
  process_.run(false, [this, id, bytes = std::move(bytes)]() mutable {
    on(transport::ConnectionRead{id, std::move(bytes)});
  });
}

void Server::connection_broken(ConnectionId id, const std::string& why) {
  process_.run(false, [this, id, why] { on(transport::ConnectionClosed{id, why}); });
}

bool Server::order(const transport::OrderGiven& order) {
  if (!is_up()) return false;
  process_.run(false, [this, order] { on(order); });
  return true;
}

bool Server::ask_for_stacks(const std::string& job) {
  if (!is_up()) return false;
  process_.run(false, [this, job] {
    const transport::StacksDesk::Ticket ticket = ++last_ticket_;
    using Desk = transport::StacksDesk;
    askers_[ticket] = now_ms() + Desk::kPauseMs + Desk::kAnswerMs;
    on(transport::StacksAsked{job, ticket});
  });
  return true;
}

// Each question is answered once, and nothing is told of a node that is named as one without an answer.
void Server::tell_stacks(const transport::StacksAnswered& answer) {
  for (const transport::StacksDesk::Ticket ticket : answer.tickets) {
    if (askers_.erase(ticket) == 0) simulation_.invariants().broken("stacks are told to who asks, once", name());
  }
  if (answer.kind != coordinator::OrderAnswered::Kind::kAccepted) return;
  const auto document = stacks::read_document(answer.text);
  if (!document) return simulation_.invariants().broken("stacks can be read", name());
  for (const stacks::StackGroup& group : document->all.groups) {
    for (const stacks::Member& member : group.members) {
      const auto node = std::ranges::find(document->nodes, member.node, &stacks::NodeAnswer::name);
      if (node == document->nodes.end() || !node->problem.empty()) {
        simulation_.invariants().broken("stacks are those of nodes that answered", member.node);
      }
    }
  }
}

void Server::check_askers() const {
  for (const auto& [ticket, until_ms] : askers_) {
    if (until_ms && now_ms() > *until_ms) simulation_.invariants().broken("who asks for stacks is answered", name());
  }
}

void Server::on(const transport::ServiceEvent& event) {
  if (!service_) return;
  transport::ServiceEffects effects;
  {
    const Running running(Part::kCoordinator);
    effects = service_->on_event(event, now_ms());
  }
  simulation_.trace().add(event.index());
  for (transport::ServiceEffect& effect : effects) {
    if (!service_) return;
    perform(effect);
  }
  if (!service_) return;
  check_askers();
  simulation_.coordinator_has_acted(*this);
  plan_timer();
  plan_to_gossip();
  if (service_ && node_ != nullptr) {
    const transport::Lead lead = service_->lead_of(job_);
    if (std::exchange(lead_, lead) != lead) node_->lead_changes();
  }
  if (when_idle_ && service_ && service_->connections() == 0) std::exchange(when_idle_, nullptr)();
}

void Server::perform(transport::ServiceEffect& effect) {
  simulation_.trace().add(effect.index());
  if (auto* write = std::get_if<transport::Write>(&effect)) {
    simulation_.sniff(write->connection, End::kServer, write->bytes);
    simulation_.network().send(write->connection, End::kServer, std::move(write->bytes));
  } else if (const auto* close = std::get_if<transport::Close>(&effect)) {
    if (simulation_.trace().is_read()) simulation_.line(format("{}: closes connection {}", name(), close->connection));
    simulation_.network().close(close->connection, End::kServer);
  } else if (const auto* log = std::get_if<transport::Log>(&effect)) {
    simulation_.trace().add(log->text);
    simulation_.coordinator_logs(*this, log->job, log->text);
    if (simulation_.trace().is_read()) simulation_.line(format("{}: {}: {}", name(), log->job, log->text));
  } else if (const auto* peer_port = std::get_if<transport::TryPeerPortOf>(&effect)) {
    try_peer_port(*peer_port);
  } else if (auto* gossip_to = std::get_if<transport::GossipTo>(&effect)) {
    const auto where = static_cast<ListenerId>(gossip_to->port);
    if (!simulation_.setup().peer_ports_are_shut) gossip(std::move(gossip_to->what), where);
  } else if (const auto* stacks = std::get_if<transport::StacksAnswered>(&effect)) {
    tell_stacks(*stacks);
  }
}

void Server::try_peer_port(const transport::TryPeerPortOf& peer_port) {
  const std::uint32_t launch = process_.launch();
  const auto answered = [this, launch, peer_port](bool is_open) {
    if (launch != process_.launch()) return;
    process_.run(false, [this, peer_port, is_open] {
      on(transport::PeerPortAnswered{peer_port.job,
                                     {peer_port.peer_port.agent, is_open ? peer_port.peer_port.addresses : ""}});
    });
  };
  if (simulation_.setup().peer_ports_are_shut) return simulation_.timeline().after(1, [answered] { answered(false); });
  const auto is_answered = std::make_shared<bool>(false);
  visits_.emplace_back(
      [this, answered, is_answered](ConnectionId id, bool is_made) {
        if (is_made) simulation_.network().close(id, End::kClient);
        if (!std::exchange(*is_answered, true)) answered(is_made);
      },
      nullptr);
  auto& network = simulation_.network();
  (void)network.connect(network.host_of(listener_), visits_.back(), static_cast<ListenerId>(peer_port.peer_port.port));
  simulation_.timeline().after(protocol::LeaseTimes::kPeerPortMs, [answered, is_answered] {
    if (!std::exchange(*is_answered, true)) answered(false);
  });
}

void Server::plan_to_gossip() {
  const bool may_move = simulation_.setup().moves() && !simulation_.setup().is_by_file() && node_ != nullptr;
  if (!may_move || gossips_ || service_->jobs() == 0 || listener_ == simulation_.first_server().listener()) return;
  gossips_ = true;
  const Ms pause_ms = protocol::LeaseTimes{simulation_.setup().loss_timeout_ms}.renewal_ms();
  simulation_.timeline().at(node_->when_shows(now_ms() + pause_ms), [this, launch = process_.launch()] {
    if (launch != process_.launch()) return;
    process_.run(true, [this] {
      gossips_ = false;
      if (!service_) return;
      gossip_at(simulation_.first_server().listener());
      plan_to_gossip();
    });
  });
}

void Server::gossip(protocol::Introduction what, ListenerId where) {
  if (what.gossips->port == 0) what.gossips->port = static_cast<std::uint16_t>(listener_);
  const auto session = std::make_shared<protocol::AgentSession>(std::move(what), kSecret, nonce());
  auto& network = simulation_.network();
  visits_.emplace_back(
      [&network, session](ConnectionId id, bool is_made) {
        if (is_made) network.send(id, End::kClient, session->begin());
      },
      [&network, session](ConnectionId id, const ByteString& bytes) {
        ByteString reply;
        const auto events = session->receive(bytes, reply);
        if (!reply.empty()) network.send(id, End::kClient, std::move(reply));
        if (!events.empty()) network.close(id, End::kClient);
      });
  (void)network.connect(network.host_of(listener_), visits_.back(), where);
}

void Server::plan_timer() {
  const auto next_ms = service_ ? service_->next_deadline_ms() : std::nullopt;
  if (!next_ms) {
    timer_at_ms_.reset();
    ++timer_;
    return;
  }
  if (timer_at_ms_ == next_ms) return;
  timer_at_ms_ = next_ms;
  const Ms at_ms = node_ != nullptr ? node_->when_shows(*next_ms) : *next_ms;
  simulation_.timeline().at(at_ms, [this, timer = ++timer_] {
    if (timer != timer_) return;
    process_.run(true, [this, timer] {
      if (timer != timer_) return;
      timer_at_ms_.reset();
      on(transport::ServiceTime{});
    });
  });
}

}  // namespace elastic::simulation
