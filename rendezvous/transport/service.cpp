#include "rendezvous/transport/service.h"

#include <algorithm>
#include <utility>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/protocol/limits.h"
#include "rendezvous/protocol/random_id.h"
#include "rendezvous/transport/limits.h"
#include "src/base/address.h"
#include "src/base/check.h"
#include "src/base/limits.h"
#include "src/base/overloaded.h"
#include "src/base/text.h"
#include "src/status/limits.h"

namespace elastic::transport {

using namespace coordinator;
using namespace protocol;

namespace {

// The name of a connection that may not have introduced itself yet.
std::string name_of(const auto& connection) {
  return connection.from.empty() ? "a connection" : format("a connection from {}", connection.from);
}

// Adds the address that a node connects from to its addresses, unless it is a loopback address.
void add_address(std::string& addresses, const std::string& from) {
  const auto is_it = [&](const std::string& known) { return same_address(known, from); };
  if (addresses.empty() || from.empty() || is_loopback(from) || std::ranges::any_of(split(addresses, ' '), is_it))
    return;
  addresses += " " + from;
}

}  // namespace

Service::Service(ServiceSettings settings, std::int64_t now_ms)
    : settings_(std::move(settings)), born_ms_(now_ms), now_ms_(now_ms) {}

Service::~Service() = default;

bool Service::only_ends() const {
  return std::ranges::all_of(jobs_, [](const auto& entry) { return entry.second->is_ending(); });
}

ServiceEffects Service::on_event(const ServiceEvent& event, std::int64_t now_ms) {
  ServiceEffects out;
  now_ms_ = std::max(now_ms_, now_ms);
  std::visit(Overloaded{[&](const ConnectionOpened& e) { on_connection_opened(e, out); },
                        [&](const ConnectionRead& e) { on_connection_read(e, out); },
                        [&](const ConnectionClosed& e) { on_connection_closed(e, out); },
                        [&](const ServiceTime& e) { on_service_time(e, out); },
                        [&](const OrderGiven& e) { on_order_given(e, out); },
                        [&](const PeerFacts& e) { on_peer_facts(e, out); },
                        [&](const PeerPortAnswered& e) { on_peer_port_answered(e, out); },
                        [&](const AgentEnded& e) { on_agent_ended(e, out); },
                        [&](const ProcessLeaves& e) { on_process_leaves(e, out); },
                        [&](const StacksAsked& e) { on_stacks_asked(e, out); }},
             event);
  for (const std::string& job : std::exchange(left_, {})) forget_if_empty(job);
  if (!stacks_.empty()) go_on_with_stacks(out);
  // A connection is looked at as such, and as the session of a node.
  if (pace_.is_due(2 * connections_.size() + jobs_.size())) check_invariants();
  return out;
}

std::optional<std::int64_t> Service::next_deadline_ms() const {
  std::optional<std::int64_t> next;
  if (!deadlines_.empty()) next = deadlines_.begin()->first;
  const auto at = [&](std::int64_t when_ms) { next = std::min(next.value_or(when_ms), when_ms); };
  if (!greetings_.empty()) at(greetings_.begin()->first);
  for (const auto& [job, desk] : stacks_) {
    if (const auto due_ms = desk.due_ms()) at(*due_ms);
  }
  return next;
}

const Coordinator* Service::find(const std::string& job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : found->second.get();
}

status::Coordinator Service::status(std::int64_t now_ms) const {
  status::Coordinator out{.connections = static_cast<std::int64_t>(connections_.size()), .ended = ended_by_outcome_};
  std::size_t members = 0;
  for (const auto& [name, coordinator] : jobs_) {
    out.jobs.push_back(coordinator->status(now_ms, limits::kStatusNodes - members, [this](NodeId session) {
      const auto found = connections_.find(session);
      return found == connections_.end() ? std::string() : address_of(found->second);
    }));
    out.jobs.back().id = name;
    members += out.jobs.back().members.size();
  }
  for (auto ended = ended_.rbegin(); ended != ended_.rend() && out.last_ended.size() < limits::kStatusEndedJobs;
       ++ended) {
    std::string reason = ended->job_result.reason;
    if (reason.empty() && !ended->job_result.failures.empty()) reason = ended->job_result.failures.front().text();
    out.last_ended.push_back({ended->job, ended->job_result.outcome, std::move(reason)});
  }
  return out;
}

void Service::on_connection_opened(const ConnectionOpened& event, ServiceEffects& out) {
  const auto [place, is_new] =
      connections_.emplace(event.connection, Connection(CoordinatorSession(settings_.secret, event.nonce)));
  if (!is_new) return;
  if (connections_.size() > limits::kAgentConnections) {
    out.push_back(
        Log{{}, format("{} connections are open, more than are allowed: a new one was closed", connections_.size())});
    return close(event.connection, out);
  }
  place->second.from = event.from;
  place->second.at = event.at;
  place->second.greet_until_ms = now_ms_ + settings_.greeting_ms;
  greetings_.emplace(place->second.greet_until_ms, event.connection);
}

void Service::on_connection_read(const ConnectionRead& event, ServiceEffects& out) {
  auto found = connections_.find(event.connection);
  if (found == connections_.end()) return;
  ByteString reply;
  const auto events = found->second.session.receive(event.bytes, reply);
  if (!reply.empty()) out.push_back(Write{event.connection, std::move(reply)});
  for (const auto& each : events) {
    if (!connections_.contains(event.connection)) return;
    on_session_event(event.connection, each, out);
  }
}

void Service::on_connection_closed(const ConnectionClosed& event, ServiceEffects& out) {
  const auto found = connections_.find(event.connection);
  if (found == connections_.end()) return;
  const std::string job = found->second.job;
  const bool was_welcome = found->second.welcome;
  greetings_.erase({found->second.greet_until_ms, event.connection});
  connections_.erase(found);
  if (!was_welcome) return;
  left_.insert(job);
  if (stacks_.contains(job)) gone_.emplace_back(job, event.connection);
  to_coordinator(job, SessionEnded{event.connection, event.how}, out);
}

void Service::on_service_time(const ServiceTime&, ServiceEffects& out) {
  while (!greetings_.empty() && greetings_.begin()->first <= now_ms_) {
    const ConnectionId id = greetings_.begin()->second;
    out.push_back(Log{{},
                      format("{} has not introduced itself within {} ms and was closed", name_of(connections_.at(id)),
                             settings_.greeting_ms),
                      "silent_stranger"});
    close(id, out);
  }
  std::vector<std::string> due;
  for (const auto& [at_ms, job] : deadlines_) {
    if (at_ms > now_ms_) break;
    due.push_back(job);
  }
  for (const std::string& job : due) to_coordinator(job, TimePassed{}, out);
}

void Service::on_peer_facts(const PeerFacts& event, ServiceEffects& out) {
  const PeerFacts before = std::exchange(peer_facts_, event);
  const bool is_same = event.addresses == before.addresses && event.port == before.port && event.term == before.term;
  if (event.addresses.empty() || is_same || !jobs_.contains(event.job)) return;
  to_coordinator(event.job, OwnAgentElsewhere{event.term}, out);
}

void Service::on_peer_port_answered(const PeerPortAnswered& event, ServiceEffects& out) {
  to_coordinator(event.job, event.tried, out);
}

void Service::on_each(const Event& event, ServiceEffects& out) {
  std::vector<std::string> jobs;
  for (const auto& [job, served] : jobs_) jobs.push_back(job);
  for (const std::string& job : jobs) to_coordinator(job, event, out);
}

void Service::on_order_given(const OrderGiven& event, ServiceEffects& out) {
  auto job = job_of(event.job);
  if (job) return to_coordinator(*job, event.order, out);
  out.push_back(std::move(job.error()));
}

std::expected<std::string, OrderAnswered> Service::job_of(const std::string& name) const {
  const bool is_only = name.empty() && jobs_.size() == 1;
  if (is_only) return jobs_.begin()->first;
  if (jobs_.contains(name)) return name;
  constexpr std::size_t kMostNamed = 16;
  std::vector<std::string> names;
  for (const auto& [job, coordinator] : jobs_) {
    if (names.size() < kMostNamed) names.push_back(printable(job));
  }
  const std::string wrong = name.empty() ? "" : format("there is no job {} here; ", printable(name));
  const std::string more = jobs_.size() > kMostNamed ? format(" and {} more", jobs_.size() - kMostNamed) : "";
  const std::string here = jobs_.empty()
                               ? "no job is here now"
                               : format("the jobs here are {}{}; name one with --rdzv-id", join(names, ", "), more);
  return std::unexpected(OrderAnswered{OrderAnswered::Kind::kUnknown, wrong + here});
}

void Service::on_session_event(ConnectionId id, const CoordinatorSession::Event& event, ServiceEffects& out) {
  Connection& connection = connections_.at(id);
  std::visit(Overloaded{
                 [&](const CoordinatorSession::Introduced& e) { introduced(id, e.introduction, out); },
                 [&](const CoordinatorSession::Received& e) {
                   if (const auto* told = std::get_if<NodeStacks>(&e.message)) {
                     const auto desk = stacks_.find(connection.job);
                     if (desk != stacks_.end()) perform(desk->first, desk->second.on_stacks(id, *told, now_ms_), out);
                     return;
                   }
                   MessageReceived said{id, e.message};
                   if (auto* store = std::get_if<StoreIsOpen>(&said.message)) {
                     if (store->endpoint.address.empty()) store->endpoint.address = address_of(connection);
                   }
                   // A node that gives no name is known by the address that it connects from.
                   if (auto* joins = std::get_if<NodeJoins>(&said.message)) {
                     if (joins->address.empty()) joins->address = connection.from;
                     add_address(joins->addresses, connection.from);
                   }
                   to_coordinator(connection.job, said, out);
                 },
                 [&](const CoordinatorSession::KeepAlive& e) {
                   if (connection.welcome) connection.unanswered = e.number;
                   to_coordinator(connection.job, KeepAliveReceived{id}, out);
                 },
                 [&](const CoordinatorSession::LeaseAck& e) { take_lease_ack(id, e, out); },
                 [&](const CoordinatorSession::NodeIsEmpty& e) {
                   const std::string job = e.job;
                   close(id, out);
                   emptied_nodes_.emplace_back(job, NodeEmptied{e.agent, e.incarnation, e.round});
                   if (emptied_nodes_.size() > limits::kNextLeaders) emptied_nodes_.pop_front();
                   pass_on_emptied_nodes(job, out);
                 },
                 [&](const CoordinatorSession::Stale& e) {
                   out.push_back(Log{connection.job, e.text});
                 },
                 [&](const SessionError& e) {
                   out.push_back(Log{connection.job, format("{}: {}", name_of(connection), e.text), "stranger"});
                   const std::string job = connection.job;
                   const bool was_welcome = connection.welcome;
                   close(id, out);
                   if (was_welcome) to_coordinator(job, SessionEnded{id, e.text}, out);
                 },
             },
             event);
}

// A lease counts from when the keep-alive was sent, however late the answer is.
void Service::answer(ConnectionId id, Connection& connection, const protocol::Grant& grant, ServiceEffects& out) {
  const std::uint64_t number = *connection.unanswered;
  if (grant.is_lease) connection.unanswered.reset();
  if (grant.asks_vote && (connection.asked.empty() || connection.asked.back().first < number)) {
    connection.asked.emplace_back(number, now_ms_);
    if (connection.asked.size() > limits::kAgentUnansweredKeepAlives) connection.asked.erase(connection.asked.begin());
  }
  ByteString bytes;
  connection.session.grant_lease(number, grant.good_for_ms, grant.asks_vote, bytes);
  out.push_back(Write{id, std::move(bytes)});
}

// A vote counts from when the answer was sent that it acknowledges. An answer that was never sent counts nothing.
void Service::take_lease_ack(ConnectionId id, const CoordinatorSession::LeaseAck& ack, ServiceEffects& out) {
  Connection& connection = connections_.at(id);
  const auto asked = std::ranges::find(connection.asked, ack.number, [](const auto& entry) { return entry.first; });
  if (asked == connection.asked.end()) return;
  const std::int64_t since_ms = asked->second;
  connection.asked.erase(connection.asked.begin(), asked);
  to_coordinator(connection.job, LeaseAckReceived{id, since_ms, ack.voter_state}, out);
}

// The address by which the other nodes of its job reach a node: the one that it connects from, unless it is on this
// host and connects by loopback. Then it is the address at which a node of another host has reached this one.
std::string Service::address_of(const Connection& connection) const {
  const auto is_elsewhere = [](const Connection& each) { return !each.from.empty() && !is_loopback(each.from); };
  if (is_elsewhere(connection)) return connection.from;
  for (const auto& [id, other] : connections_) {
    if (other.job == connection.job && is_elsewhere(other)) return other.at;
  }
  return connection.from;
}

void Service::to_coordinator(std::string job, const Event& event, ServiceEffects& out) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  Coordinator& coordinator = *found->second;
  if (recorder) recorder(job, event, now_ms_);
  const Term term = coordinator.term();
  const Incarnation incarnation = coordinator.incarnation();
  const Effects effects = coordinator.on_event(event, now_ms_);
  ELASTIC_CHECK(coordinator.term() >= term);
  if (coordinator.term() != term || coordinator.incarnation() != incarnation) {
    for (auto& [id, connection] : connections_) {
      if (connection.job == job && connection.welcome) {
        connection.session.set_stamp(coordinator.term(), coordinator.incarnation());
      }
    }
  }
  for (const Effect& effect : effects) perform(job, effect, out);
  if (const auto old = deadline_of_.find(job); old != deadline_of_.end()) {
    deadlines_.erase({old->second, job});
    deadline_of_.erase(old);
  }
  if (coordinator.ended()) {
    if (coordinator.ending().job_result()) {
      ended_.push_back({job, coordinator.incarnation(), *coordinator.ending().job_result(),
                        coordinator.ending().details(), coordinator.fence().birth_ms});
      if (ended_.size() > limits::kEndedJobs) ended_.pop_front();
      ++ended_by_outcome_[static_cast<std::size_t>(coordinator.ending().job_result()->outcome)];
    } else if (coordinator.round()) {
      // Another coordinator has taken over. A job that begins here after that must wait for its leases, and for ours.
      born_ms_ = now_ms_;
    }
    if (coordinator.has_transferred_leadership() && transferred_.size() < limits::kJobsServed) transferred_.insert(job);
    if (coordinator.ending().job_result()) {
      left_to_others_.erase(job);
    } else if (left_to_others_.size() < limits::kJobsServed || left_to_others_.contains(job)) {
      left_to_others_[job] = {coordinator.incarnation(), coordinator.term()};
    }
    jobs_.erase(found);
    // Sessions that had not joined yet are closed: their agents connect again, and begin a new job of this name.
    return close_all(job, out);
  }
  if (const auto next_ms = coordinator.next_deadline_ms()) {
    deadlines_.emplace(*next_ms, job);
    deadline_of_[job] = *next_ms;
  }
  if (coordinator.state() == Coordinator::State::kRecovery) pass_on_emptied_nodes(job, out);
}

// The death notice may come before the nodes that elect a coordinator here.
void Service::pass_on_emptied_nodes(const std::string& job, ServiceEffects& out) {
  const Coordinator* coordinator = find(job);
  if (coordinator == nullptr || (emptied_nodes_.empty() || !coordinator->round())) return;
  std::vector<NodeEmptied> due;
  std::erase_if(emptied_nodes_, [&](const auto& entry) {
    const bool is_due = entry.first == job;
    if (is_due) due.push_back(entry.second);
    return is_due;
  });
  for (const NodeEmptied& word : due) to_coordinator(job, word, out);
}

void Service::perform(const std::string& job, const Effect& effect, ServiceEffects& out) {
  std::visit(Overloaded{
                 [&](const Send& e) {
                   const auto found = connections_.find(e.to);
                   if (found == connections_.end()) return;
                   ByteString bytes;
                   found->second.session.send(e.message, bytes);
                   if (!bytes.empty()) out.push_back(Write{e.to, std::move(bytes)});
                   const bool is_last =
                       std::holds_alternative<Rejected>(e.message) || std::holds_alternative<Dismiss>(e.message);
                   if (is_last) close(e.to, out);
                 },
                 [&](const Drop& e) { close(e.session, out); },
                 [&](const Note& e) {
                   out.push_back(Log{job, e.text, e.event, e.fields});
                 },
                 [&](const CheckJudged& e) {
                   out.push_back(Judged{job, e});
                 },
                 [&](const OrderAnswered& e) { out.push_back(e); },
                 [&](const TryPeerPort& e) {
                   out.push_back(TryPeerPortOf{job, e});
                 },
                 [&](const AnswerKeepAlive& e) {
                   const auto found = connections_.find(e.to);
                   const bool is_awaited = found != connections_.end() && found->second.unanswered;
                   if (is_awaited) answer(e.to, found->second, e.grant, out);
                 },
             },
             effect);
}

void Service::close(ConnectionId id, ServiceEffects& out) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  greetings_.erase({found->second.greet_until_ms, id});
  if (found->second.welcome) left_.insert(found->second.job);
  if (stacks_.contains(found->second.job)) gone_.emplace_back(found->second.job, id);
  connections_.erase(found);
  out.push_back(Close{id});
}

void Service::close_all(const std::string& job, ServiceEffects& out) {
  std::vector<ConnectionId> open;
  for (const auto& [id, connection] : connections_) {
    if (connection.welcome && connection.job == job) open.push_back(id);
  }
  for (const ConnectionId id : open) close(id, out);
}

// Forgets a job without nodes that has had no round: its name may be used with other terms.
void Service::forget_if_empty(const std::string& job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || !found->second->is_empty()) return;
  const bool is_awaited = std::ranges::any_of(
      connections_, [&](const auto& entry) { return entry.second.welcome && entry.second.job == job; });
  if (is_awaited) return;
  if (const auto deadline = deadline_of_.find(job); deadline != deadline_of_.end()) {
    deadlines_.erase({deadline->second, job});
    deadline_of_.erase(deadline);
  }
  jobs_.erase(found);
}

void Service::check_invariants() const {
  ELASTIC_CHECK(connections_.size() <= limits::kAgentConnections);
  ELASTIC_CHECK(jobs_.size() <= limits::kJobsServed && ended_.size() <= limits::kEndedJobs);
  std::size_t strangers = 0;
  for (const auto& [id, connection] : connections_) {
    if (!connection.welcome) {
      ++strangers;
      ELASTIC_CHECK(greetings_.contains({connection.greet_until_ms, id}));
      continue;
    }
    // An agent is welcome in a job that is served here, whose stamp it knows.
    const Coordinator* coordinator = find(connection.job);
    ELASTIC_CHECK(coordinator != nullptr);
    ELASTIC_CHECK(connection.session.stamp().term == coordinator->term());
    ELASTIC_CHECK(connection.session.stamp().incarnation == coordinator->incarnation());
  }
  ELASTIC_CHECK(greetings_.size() == strangers);
  check_jobs();
}

// Each session of a coordinator is a connection to its job, and its next time is known.
void Service::check_jobs() const {
  std::size_t timed = 0;
  for (const auto& [job, coordinator] : jobs_) {
    ELASTIC_CHECK(!coordinator->ended());
    for (const auto& [agent, node] : coordinator->roster().nodes()) {
      if (!node.session) continue;
      const auto connection = connections_.find(*node.session);
      ELASTIC_CHECK(connection != connections_.end() && connection->second.welcome && connection->second.job == job);
    }
    const auto next_ms = coordinator->next_deadline_ms();
    if (!next_ms) continue;
    ++timed;
    const auto deadline = deadline_of_.find(job);
    ELASTIC_CHECK(deadline != deadline_of_.end() && deadline->second == *next_ms);
    ELASTIC_CHECK(deadlines_.contains({*next_ms, job}));
  }
  ELASTIC_CHECK(deadlines_.size() == timed && deadline_of_.size() == timed);
}

const Service::Ended* Service::ended(const std::string& job, Incarnation incarnation) const {
  if (incarnation == 0) return nullptr;
  const auto found = std::ranges::find_if(
      ended_, [&](const Ended& entry) { return entry.job == job && entry.incarnation == incarnation; });
  return found == ended_.end() ? nullptr : &*found;
}

}  // namespace elastic::transport
