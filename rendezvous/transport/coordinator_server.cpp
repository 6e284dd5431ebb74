#include "rendezvous/transport/coordinator_server.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "health/check/network_check.h"
#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/protocol/munge_messages.h"
#include "rendezvous/protocol/random_id.h"
#include "rendezvous/trace/recording.h"
#include "rendezvous/transport/limits.h"
#include "rendezvous/transport/random_nonce.h"
#include "src/base/check.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/overloaded.h"
#include "src/base/strangers.h"
#include "src/base/text.h"
#include "src/net/local_host.h"
#include "src/process/clock.h"
#include "src/process/random.h"

namespace elastic::transport {
namespace {

// Service's event for connections that are not those of an agent of this job. kTold of them are logged as warnings.
constexpr std::string_view kStranger = "stranger";
constexpr std::size_t kTold = 32;

// The first byte of a client of PyTorch's TCPStore.
constexpr std::uint8_t kStoreClient = 0;

}  // namespace

ServiceSettings CoordinatorServer::service_settings() {
  return {.lease = settings_.lease,
          .secret = settings_.secret,
          .only_job = settings_.only_job,
          .own_agent = settings_.own_agent,
          .name_of_only_node = is_for_only_node() ? net::full_host_name : std::function<std::string()>(),
          .is_peer_server = settings_.is_peer_server,
          .random = [] { return process::random_number(); },
          .wall_ms = [] { return process::wall_clock_ms(); },
          .make_check = [this](const std::string& job) -> std::unique_ptr<health::CheckPlan> {
            auto plan = std::make_unique<health::NetworkCheck>();
            if (!recorder_ || job != recorded_job_) return plan;
            return trace::recorded_check(std::move(plan), [this](const std::string& line) { recorder_(line); });
          }};
}

CoordinatorServer::CoordinatorServer(net::Loop& loop, Settings settings, net::Stream::Handlers only_agent)
    : loop_(loop),
      settings_(std::move(settings)),
      only_agent_(std::move(only_agent)),
      service_(service_settings(), now_ms()),
      visits_(loop),
      lingering_(loop),
      timer_(loop) {
  lingering_.on_empty([this] { tell_if_idle(); });
}

Result<std::unique_ptr<CoordinatorServer>> CoordinatorServer::open(net::Loop& loop, Settings settings) {
  std::unique_ptr<CoordinatorServer> server(new CoordinatorServer(loop, std::move(settings)));
  auto listener = net::Listener::open(
      loop, server->settings_.address, server->settings_.port,
      [self = server.get()](std::unique_ptr<net::Stream> stream) { self->accept(std::move(stream)); });
  if (!listener) return std::unexpected(std::move(listener.error()));
  server->listener_ = std::move(*listener);
  server->port_ = server->listener_->port();
  if (!server->settings_.own_agent) {
    std::string addresses = join(net::own_addresses(), " ");
    if (addresses.empty()) addresses = kLoopback;  // a host without a network
    server->service_.set_own_process(
        {protocol::random_id(process::random_number()), -1, std::move(addresses), server->port_});
  }
  return server;
}

// Neither end can fall silent without the other: after the first keep-alive none is due.
std::unique_ptr<CoordinatorServer> CoordinatorServer::for_only_node(net::Loop& loop, const std::string& job,
                                                                    protocol::AgentId own,
                                                                    net::Stream::Handlers agent) {
  return std::unique_ptr<CoordinatorServer>(
      new CoordinatorServer(loop,
                            {.address = {},
                             .port = 0,
                             .secret = {},
                             .lease = {.loss_timeout_ms = limits::kMaxTimeoutSeconds * 1000},
                             .only_job = job,
                             .own_agent = own},
                            std::move(agent)));
}

// Leases go on while the machine is suspended. An only node has none, and its workers are suspended with it.
std::int64_t CoordinatorServer::now_ms() const {
  return is_for_only_node() ? process::monotonic_ms() : process::boottime_ms();
}

void CoordinatorServer::connect() {
  ELASTIC_CHECK(last_ == 0);  // a second session would wait until all leases of such a time are over
  only_connection_ = ++last_;
  on_event(ConnectionOpened{only_connection_, random_nonce()});
}

void CoordinatorServer::receive(std::span<const std::uint8_t> bytes) {
  if (only_connection_ != 0) on_event(ConnectionRead{only_connection_, {bytes.begin(), bytes.end()}});
}

void CoordinatorServer::record(const std::string& job, std::function<void(std::string_view line)> write) {
  const auto began = std::make_shared<protocol::Incarnation>(0);
  recorded_job_ = job;
  recorder_ = write;
  service_.recorder = [this, job, write = std::move(write), began](
                          const std::string& name, const coordinator::Event& event, std::int64_t now_ms) {
    if (name != job) return;
    const coordinator::Coordinator* coordinator = service_.find(name);
    if (coordinator == nullptr) return;
    // Each coordinator of the name, should there be several, begins a recording of its own.
    if (std::exchange(*began, coordinator->config().incarnation) != coordinator->config().incarnation) {
      write(trace::recording_head(name, coordinator->config(), true));
    }
    write(trace::recording_line(event, now_ms));
  };
}

void CoordinatorServer::tell_if_idle() {
  if (on_idle_ && is_idle()) on_idle_();
}

void CoordinatorServer::accept(std::unique_ptr<net::Stream> stream) {
  const ConnectionId id = ++last_;
  net::Stream& accepted = *stream;
  const std::string peer = accepted.peer_address();
  const std::string local = accepted.local_address();
  connections_.emplace(id, Connection{std::move(stream)});
  accepted.start({.on_data = [this, id](std::span<const std::uint8_t> bytes) { read(id, bytes); },
                  .on_end =
                      [this, id] {
                        connections_.erase(id);
                        on_event(ConnectionClosed{id, "its connection ended"});
                      }});
  on_event(ConnectionOpened{id, random_nonce(), peer, local});
}

void CoordinatorServer::read(ConnectionId id, std::span<const std::uint8_t> bytes) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (!std::exchange(found->second.begun, true) && !bytes.empty()) {
    if (settings_.to_store && bytes[0] == kStoreClient) {
      return settings_.to_store(release(id, "it is a client of the workers' store"), bytes);
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (settings_.to_munge && text.starts_with(protocol::munge::kMark)) {
      return settings_.to_munge(release(id, "it asks by munge"), bytes);
    }
    if (to_http_ && recognised(text) == Stranger::kHttp) return to_http_(release(id, "it speaks HTTP"), bytes);
  }
  on_event(ConnectionRead{id, {bytes.begin(), bytes.end()}});
}

std::unique_ptr<net::Stream> CoordinatorServer::release(ConnectionId id, std::string why) {
  const auto found = connections_.find(id);
  std::unique_ptr<net::Stream> stream = std::move(found->second.stream);
  connections_.erase(found);
  on_event(ConnectionClosed{id, std::move(why)});
  return stream;
}

status::Coordinator CoordinatorServer::status() const { return service_.status(now_ms()); }

coordinator::OrderAnswered CoordinatorServer::order(const std::string& job, coordinator::OperatorOrder order) {
  on_event(OrderGiven{job, std::move(order)});
  ELASTIC_CHECK(answer_.has_value());
  return *std::exchange(answer_, std::nullopt);
}

void CoordinatorServer::collect_stacks(const std::string& job, OnStacks answered) {
  const StacksDesk::Ticket ticket = ++last_ticket_;
  stacks_askers_.emplace(ticket, std::move(answered));
  on_event(StacksAsked{job, ticket});
}

// Effects may bring about further events at once, which wait in the queue until all effects of the present one have
// been carried out.
void CoordinatorServer::on_event(ServiceEvent event) {
  events_.push_back(std::move(event));
  if (std::exchange(deciding_, true)) return;
  while (!events_.empty()) {
    const ServiceEvent next = std::move(events_.front());
    events_.pop_front();
    ServiceEffects effects = service_.on_event(next, now_ms());
    for (ServiceEffect& effect : effects) perform(effect);
  }
  deciding_ = false;
  plan_timer();
  if (settings_.on_lead) {
    const Lead lead = service_.lead_of(settings_.only_job);
    if (std::exchange(lead_, lead) != lead) settings_.on_lead();
  }
  tell_if_idle();
}

void CoordinatorServer::perform(ServiceEffect& effect) {
  std::visit(Overloaded{
                 [&](Write& e) {
                   if (e.connection == only_connection_) return only_agent_.on_data(e.bytes);
                   const auto found = connections_.find(e.connection);
                   if (found == connections_.end()) return;
                   found->second.stream->write({e.bytes.begin(), e.bytes.end()});
                   if (found->second.stream->held_bytes() <= limits::kAgentUnreadBytes) return;
                   log::warning("agent_reads_nothing",
                                format("{} reads nothing: its connection is closed", found->second.stream->peer()));
                   connections_.erase(found);
                   on_event(ConnectionClosed{e.connection, "it read nothing"});
                 },
                 [&](const Close& e) {
                   if (e.connection == only_connection_) {
                     only_connection_ = 0;
                     return only_agent_.on_end();
                   }
                   const auto found = connections_.find(e.connection);
                   if (found == connections_.end()) return;
                   std::unique_ptr<net::Stream> stream = std::move(found->second.stream);
                   connections_.erase(found);
                   lingering_.part(std::move(stream));
                 },
                 [&](const Judged& e) {
                   if (on_judged_) on_judged_(e.job, e.check);
                 },
                 [&](coordinator::OrderAnswered& e) { answer_ = std::move(e); },
                 [&](const StacksAnswered& e) {
                   for (const StacksDesk::Ticket ticket : e.tickets) {
                     if (const auto asker = stacks_askers_.extract(ticket)) asker.mapped()(e);
                   }
                 },
                 [&](const TryPeerPortOf& e) { try_peer_port(e); },
                 [&](const GossipTo& e) { gossip_to(e); },
                 [&](const Log& e) { write_log(e); },
             },
             effect);
}

void CoordinatorServer::write_log(const Log& line) {
  const bool is_named = !line.job.empty() && !is_for_only_node();
  const std::string text = is_named ? format("job {}: {}", printable(line.job), line.text) : line.text;
  // A client that connects by mistake, or with another secret, mostly does so again and again.
  const bool is_news = line.event == kStranger && told_.size() < kTold && told_.insert(text).second;
  Json fields = line.fields.is_null() ? Json::object() : line.fields;
  if (!is_for_only_node()) fields.set("job", line.job);
  log::Level level = is_news || coordinator::is_warning(line.event) ? log::Level::kWarning : log::Level::kInfo;
  // The agent of the only node logs both itself. The end is logged here for programs only.
  if (is_for_only_node()) {
    if (line.event == coordinator::kRoundFormed) return;
    if (line.event == coordinator::kJobEnds) level = log::Level::kDebug;
  }
  log::write_event(level, line.event, text, fields);
}

void CoordinatorServer::try_peer_port(const TryPeerPortOf& peer_port) {
  const std::pair key(peer_port.job, peer_port.peer_port.agent);
  probes_[key] =
      std::make_unique<PeerPortProbe>(loop_, net::addresses_elsewhere(split(peer_port.peer_port.addresses, ' ')),
                                      peer_port.peer_port.port, [this, key](std::string address) {
                                        const auto done = probes_.extract(key);
                                        on_event(PeerPortAnswered{key.first, {key.second, std::move(address)}});
                                      });
}

std::optional<discovery::Entry> CoordinatorServer::entry(const std::string& job) const {
  auto entry = service_.entry(job, now_ms());
  if (entry) entry->leader.port = port_;  // the address is the caller's
  return entry;
}

bool CoordinatorServer::leads(const std::string& job) const {
  const coordinator::Coordinator* coordinator = service_.find(job);
  return coordinator != nullptr && coordinator->may_act();
}

std::optional<protocol::Introduction> CoordinatorServer::gossip(const std::string& job) const {
  auto what = service_.gossip(job);
  if (what) what->gossips->port = port_;
  return what;
}

void CoordinatorServer::gossip_to(const GossipTo& there) {
  protocol::Introduction what = there.what;
  if (what.gossips && what.gossips->port == 0) what.gossips->port = port_;
  visits_.go(net::addresses_elsewhere(split(there.addresses, ' ')), there.port, settings_.secret,
             [what = std::move(what)] { return what; });
}

void CoordinatorServer::plan_timer() {
  const auto next_ms = service_.next_deadline_ms();
  if (next_ms == timer_at_ms_) return;
  timer_at_ms_ = next_ms;
  if (!next_ms) return timer_.stop();
  timer_.start(std::max<std::int64_t>(*next_ms - now_ms(), 0), [this] {
    timer_at_ms_.reset();
    on_event(ServiceTime{});
  });
}

}  // namespace elastic::transport
