// What a service does with connections that introduce themselves: it welcomes them, redirects them, or hears their
// gossip.
#include <algorithm>
#include <utility>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/protocol/random_id.h"
#include "rendezvous/transport/limits.h"
#include "rendezvous/transport/service.h"
#include "src/base/address.h"
#include "src/base/text.h"

namespace elastic::transport {

using namespace coordinator;
using namespace protocol;

namespace {

// After so long an agent may ask again at a peer port whose node does not know the coordinator.
constexpr std::int64_t kPeerPortRetryMs = 20;
constexpr std::int64_t kStrangerRetryMs = 500;

}  // namespace

void Service::introduced(ConnectionId id, const Introduction& introduction, ServiceEffects& out) {
  greetings_.erase({connections_.at(id).greet_until_ms, id});
  const std::string job = introduction.job;
  if (!settings_.only_job.empty() && job != settings_.only_job) {
    return refuse(id, format("this coordinator serves job {} and no other", printable(settings_.only_job)), out,
                  {.knows_nothing = true});
  }
  if (introduction.gossips) return gossiped(id, introduction, out);
  if (const Ended* over = ended(job, introduction.incarnation)) {
    return tell_job_result(id, introduction, *over, out);
  }
  if (!jobs_.contains(job)) {
    if (auto redirect = directs(introduction)) {
      return refuse(id, "the coordinator is not here", out, std::move(*redirect));
    }
    const bool knows_nothing = !left_to_others_.contains(job);
    if (leaves()) return refuse(id, "this process is ending", out, {.knows_nothing = knows_nothing});
    if (!introduction.may_begin) {
      return refuse(id, "this is not the host where the job begins", out,
                    {.retry_ms = kStrangerRetryMs, .knows_nothing = knows_nothing});
    }
    if (jobs_.size() >= limits::kJobsServed) {
      return refuse(id, format("this coordinator serves {} jobs already, the most that it may", jobs_.size()), out);
    }
    // A job that is started again here is born later, also if the clock was set back meanwhile.
    last_birth_ms_ = std::max(settings_.wall_ms(), last_birth_ms_ + 1);
    std::int64_t least_birth_ms = 0;
    for (const Ended& over : ended_) {
      if (over.job == job) least_birth_ms = std::max(least_birth_ms, over.birth_ms + 1);
    }
    const CoordinatorConfig config{.incarnation = random_id(settings_.random()),
                                   .lease = settings_.lease,
                                   .now_ms = born_ms_,
                                   .random = static_cast<std::uint32_t>(settings_.random()),
                                   .made_ms = now_ms_,
                                   .birth_ms = last_birth_ms_,
                                   .least_birth_ms = least_birth_ms,
                                   .own_agent = settings_.own_agent,
                                   .own_process = settings_.own_process};
    jobs_.emplace(job, std::make_unique<Coordinator>(config, settings_.make_check(job)));
  }
  // Most coordinators start with the same term: the agent may have met another coordinator of this term, or of a lower
  // one.
  Introduced event{introduction.incarnation, introduction.term};
  // Nor may it know the last one that was here, whose term may have risen when no agent was connected.
  const auto last = left_to_others_.find(job);
  if (last != left_to_others_.end() && last->second.incarnation == event.incarnation) {
    event.term = std::max(event.term, last->second.term);
  }
  if (jobs_.at(job)->must_hear(event)) to_coordinator(job, event, out);
  const auto still = connections_.find(id);
  const auto coordinator = jobs_.find(job);
  if (still == connections_.end()) return;
  // The coordinator has given way, since the agent has met a later one, and knew how the job had ended.
  const Ended* over = coordinator == jobs_.end() ? ended(job, introduction.incarnation) : nullptr;
  if (over != nullptr) return tell_job_result(id, introduction, *over, out);
  if (coordinator == jobs_.end() || coordinator->second->term() < introduction.term) {
    return refuse(id, "another coordinator has taken over from this one", out);
  }
  ByteString bytes;
  still->second.job = job;
  still->second.welcome = true;
  still->second.session.welcome(
      {coordinator->second->term(), coordinator->second->incarnation(), settings_.lease.loss_timeout_ms,
       coordinator->second->welcome_lease_ms(), process_number()},
      bytes);
  out.push_back(Write{id, std::move(bytes)});
}

// The agent missed the end of its job: it gets the job result, whatever it reports.
void Service::tell_job_result(ConnectionId id, const Introduction& introduction, const Ended& over,
                              ServiceEffects& out) {
  CoordinatorSession& session = connections_.at(id).session;
  ByteString bytes;
  session.welcome({std::max<Term>(1, introduction.term), introduction.incarnation, settings_.lease.loss_timeout_ms, {}},
                  bytes);
  session.send(EndJob{over.job_result}, bytes);
  session.send(Dismiss{over.details}, bytes);
  out.push_back(Write{id, std::move(bytes)});
  close(id, out);
}

void Service::refuse(ConnectionId id, const std::string& reason, ServiceEffects& out, Redirect redirect) {
  ByteString bytes;
  connections_.at(id).session.refuse(reason, bytes, std::move(redirect));
  out.push_back(Write{id, std::move(bytes)});
  close(id, out);
}

// Another process has the coordinator of the job. Of two starts one goes on, and the other must hear of it: that is the
// one here, or the one that gossips.
void Service::gossiped(ConnectionId id, const Introduction& introduction, ServiceEffects& out) {
  const std::string job = introduction.job;
  const Gossip& what = *introduction.gossips;
  const Coordinator* coordinator = find(job);
  const bool is_own = coordinator != nullptr && coordinator->incarnation() == introduction.incarnation &&
                      coordinator->term() == introduction.term;
  refuse(id, "the announcement was heard", out);
  if (is_own || what.addresses.empty()) return;
  auto duplicate_job = gossiped_.hear(introduction, settings_.lease, now_ms_);
  const std::string first = what.addresses.substr(0, what.addresses.find(' '));
  to_coordinator(
      job, CoordinatorGossiped{introduction.incarnation, what.birth_ms, what.round, with_port(first, what.port)}, out);
  auto own = gossip(job);
  if (own && goes_before(*own, introduction)) duplicate_job = std::move(own);
  if (duplicate_job) out.push_back(GossipTo{*std::move(duplicate_job), what.addresses, what.port});
}

std::optional<Introduction> Service::gossip(const std::string& job) const {
  const Coordinator* coordinator = find(job);
  auto what = coordinator != nullptr ? coordinator->gossip() : std::nullopt;
  if (!what) return {};
  return Introduction{job, process_number(), coordinator->incarnation(), coordinator->term(), std::move(what)};
}

Lead Service::lead_of(const std::string& job) const {
  const Coordinator* coordinator = find(job);
  const bool leads = coordinator != nullptr && coordinator->may_act();
  return leads ? Lead{coordinator->term(), coordinator->round()} : Lead{};
}

std::optional<discovery::Entry> Service::entry(const std::string& job, std::int64_t now_ms) const {
  const Coordinator* coordinator = find(job);
  if (coordinator == nullptr || coordinator->is_ending() || !coordinator->leads_by_votes(now_ms)) return {};
  discovery::Entry entry{.incarnation = coordinator->incarnation(),
                         .birth_ms = coordinator->fence().birth_ms,
                         .round = coordinator->round(),
                         .term = coordinator->term(),
                         .process = process_number()};
  for (const NextLeader& next : coordinator->next_leaders()) {
    if (next.agent == entry.process) continue;
    entry.next_leaders.push_back({next.addresses.substr(0, next.addresses.find(' ')), next.port});
  }
  return entry;
}

// Where an agent is redirected that finds no coordinator here. Empty: it may begin a job here, or elect a coordinator.
std::optional<Redirect> Service::directs(const Introduction& introduction) const {
  const bool is_of_peer_port = settings_.is_peer_server || introduction.job == peer_facts_.job;
  if (is_of_peer_port && !peer_facts_.addresses.empty()) return Redirect{peer_facts_.addresses, peer_facts_.port, {}};
  // Nodes of a round find its next coordinator by themselves, and may elect one here.
  if (introduction.incarnation == 0) {
    if (auto there = gossiped_.where(introduction.job, now_ms_)) return there;
  }
  // Otherwise the nodes would elect the coordinator that leaves, again and again. They are to ask the next leader.
  if (transferred_.contains(introduction.job)) return Redirect{};
  if (!settings_.is_peer_server) return {};
  const bool opens = peer_facts_.opens_ms && introduction.incarnation != 0;
  if (opens && *peer_facts_.opens_ms <= now_ms_) return {};
  const std::int64_t retry_ms = introduction.incarnation != 0 ? kPeerPortRetryMs : kStrangerRetryMs;
  const bool knows_nothing = introduction.incarnation == 0 && !peer_facts_.belongs;
  return Redirect{{}, 0, opens ? *peer_facts_.opens_ms - now_ms_ : retry_ms, knows_nothing};
}

}  // namespace elastic::transport
