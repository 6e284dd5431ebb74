#include "rendezvous/agent/agent.h"

#include <algorithm>
#include <utility>

#include "src/base/overloaded.h"

namespace elastic::agent {

using namespace protocol;

AgentEffects Agent::on_event(const AgentEvent& event, std::int64_t now_ms) {
  AgentEffects out;
  if (has_ended()) return out;
  // The event may come after a long sleep: before anything else, workers whose lease is over are killed.
  const auto* life = std::get_if<Event>(&event);
  const bool begins = life != nullptr && std::holds_alternative<Begin>(*life);
  if (begins) phase_ = Phase::kBegun;
  // Until then a node can only be told to end, which it does as soon as it begins.
  if (phase_ == Phase::kToBegin) {
    if (life != nullptr) to_lifecycle(*life, now_ms, out);
    return out;
  }
  if (!begins) perform(link_.on_time(owner(), now_ms), now_ms, out);
  std::visit(Overloaded{
                 [&](const Event& e) {
                   if (begins) {
                     to_lifecycle(Detached{}, now_ms, out);
                     return perform(link_.begin(now_ms), now_ms, out);
                   }
                   to_lifecycle(e, now_ms, out);
                 },
                 [&](const LinkConnected& e) {
                   if (e.secret) link_.set_secret(*e.secret);
                   peer_port_ = e.peer_port;
                   if (e.local) {
                     link_.set_local(*e.local);
                     lifecycle_.set_hosts_coordinator(*e.local);
                   }
                   perform(link_.connected({e.nonce, e.is_same_place, e.may_begin}, now_ms), now_ms, out);
                 },
                 [&](const LinkBroken& e) {
                   perform(link_.broken(e.why, e.has_refused, owner(), now_ms, e.is_further), now_ms, out);
                 },
                 [&](const LinkReceived& e) { perform(link_.received(e.bytes, owner(), now_ms), now_ms, out); },
                 [&](const LinkTimerFired&) { timer_at_ms_.reset(); },
                 [&](const OwnCoordinatorOver&) { link_.own_is_over(now_ms); },
             },
             event);
  if (has_ended()) return out;
  perform(link_.on_time(owner(), now_ms), now_ms, out);
  link_.check_invariants();
  const auto next_ms = link_.next_deadline_ms(owner());
  if (next_ms && next_ms != timer_at_ms_ && !has_ended()) {
    timer_at_ms_ = next_ms;
    out.emplace_back(StartLinkTimer{std::max<std::int64_t>(*next_ms - now_ms, 0)});
  }
  return out;
}

Link::Owner Agent::owner() const {
  const bool has_job_result = lifecycle_.has_job_result();
  return {.needs_lease = lifecycle_.needs_lease(),
          .may_connect = !lifecycle_.is_dismissed() && (!must_be_idle_ || lifecycle_.is_idle() || has_job_result),
          .runs_workers = lifecycle_.runs_workers()};
}

void Agent::to_lifecycle(const Event& event, std::int64_t now_ms, AgentEffects& out) {
  for (Effect& effect : lifecycle_.on_event(event, now_ms)) {
    if (const auto* message = std::get_if<ToCoordinator>(&effect)) {
      perform(link_.send(message->message), now_ms, out);
      continue;
    }
    if (std::holds_alternative<Finish>(effect)) {
      perform(link_.close(), now_ms, out);
      phase_ = Phase::kEnded;
    }
    out.emplace_back(std::move(effect));
  }
  if (lifecycle_.is_idle()) must_be_idle_ = false;
}

void Agent::perform(Link::Effects effects, std::int64_t now_ms, AgentEffects& out) {
  for (Link::Effect& effect : effects) {
    if (has_ended()) return;
    std::visit(Overloaded{
                   [&](Link::Connect& e) { out.emplace_back(e); },
                   [&](Link::Disconnect& e) { out.emplace_back(e); },
                   [&](Link::Write& e) { out.emplace_back(std::move(e)); },
                   [&](Link::Log& e) { out.emplace_back(std::move(e)); },
                   [&](Link::Joining&) { perform(link_.send(joins()), now_ms, out); },
                   [&](Link::Attached&) { to_lifecycle(Attached{}, now_ms, out); },
                   [&](Link::Detached& e) {
                     // The coordinator closes the connection after its last message.
                     if (!lifecycle_.is_dismissed()) out.emplace_back(Link::Log{e.why});
                     to_lifecycle(Detached{e.votes_for_ms}, now_ms, out);
                   },
                   [&](Link::Deliver& e) { deliver(e.message, now_ms, out); },
                   [&](Link::LeaseOver&) {
                     must_be_idle_ = true;
                     to_lifecycle(LeaseOver{}, now_ms, out);
                   },
                   [&](Link::GiveUp& e) { to_lifecycle(GivenUp{std::move(e.reason)}, now_ms, out); },
               },
               effect);
  }
}

void Agent::deliver(const CoordinatorMessage& message, std::int64_t now_ms, AgentEffects& out) {
  // The message may be old, and the one before it may have made the node need a lease that is over.
  perform(link_.on_time(owner(), now_ms), now_ms, out);
  if (has_ended()) return;
  out.emplace_back(Link::Deliver{message});
  // A node on standby, too, can report the job result to a coordinator that takes over.
  if (std::holds_alternative<PrepareRound>(message) || std::holds_alternative<EndJob>(message)) link_.belongs();
  if (const auto* rejected = std::get_if<Rejected>(&message)) {
    must_be_idle_ = true;
    perform(link_.rejected(rejected->reason, rejected->retry_ms, now_ms), now_ms, out);
  }
  to_lifecycle(FromCoordinator{message}, now_ms, out);
}

std::optional<Waiting> Agent::waiting() const {
  if (phase_ == Phase::kToBegin) return {};
  if (!lifecycle_.is_idle() || lifecycle_.has_job_result()) return lifecycle_.waiting();
  return link_.attached() ? lifecycle_.waiting_for_round() : link_.waiting();
}

NodeJoins Agent::joins() {
  NodeJoins joins = lifecycle_.joins();
  joins.facts.term = link_.term();
  joins.facts.incarnation = link_.own_incarnation();
  joins.session = sessions_++;
  joins.peer_port = peer_port_;
  return joins;
}

}  // namespace elastic::agent
