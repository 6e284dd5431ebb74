#include "tests/simulation/invariants.h"

#include <algorithm>

#include "rendezvous/protocol/fence.h"
#include "src/base/text.h"
#include "tests/simulation/describe.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

using namespace protocol;

void Invariants::broken(const std::string& what, const std::string& text) const {
  throw Broken{what, format("at {} ms: {}", simulation_.now_ms(), text)};
}

// The round of this term; the latest one if the term is not given.
Invariants::Formed* Invariants::find(const RoundKey& key, std::uint64_t membership, std::optional<Term> term) {
  std::vector<Formed>& all = rounds_[key];
  for (std::size_t i = all.size(); i-- > 0;) {
    if (all[i].membership == membership && (!term || all[i].term == *term)) return &all[i];
  }
  return nullptr;
}

// --- Messages. -------------------------------------------------------------------------------------

void Invariants::sent(const Node& node, AgentId agent, const Stamp& stamp, const PrepareRound& message,
                      const Server& server) {
  const RoundKey key{node.setup().job, stamp.incarnation, message.round};
  Formed* formed = find(key, message.membership, stamp.term);
  if (formed == nullptr) {
    for (const Formed& other : rounds_[key]) {
      if (other.term == stamp.term)
        broken("a round has one membership",
               format("round {} was formed twice by the coordinator of term {}", message.round, stamp.term));
    }
    check_sizes(node, message);
    check_charge(node, stamp, message);
    forget_what_was_cut_off(node, stamp, message, server);
    auto& begun = begun_[node.setup().job];
    if (std::ranges::find(begun, stamp.incarnation, &Begun::incarnation) == begun.end())
      begun.push_back({.incarnation = stamp.incarnation, .fence = {}, .formed_ms = simulation_.now_ms()});
    rounds_[key].push_back(
        {message.membership, stamp.term, message.place, message.restart_count, {}, {}, {}, message.fence});
    formed = &rounds_[key].back();
  }
  const NodePlace& place = message.place;
  if (place.node_count != formed->place.node_count || place.world_size != formed->place.world_size ||
      message.restart_count != formed->restart_count) {
    broken(
        "all nodes of a round agree on it",
        format("round {}: {} nodes and {} ranks are told to node {}, {} and {} to others", message.round,
               place.node_count, place.world_size, node.index(), formed->place.node_count, formed->place.world_size));
  }
  if (message.fence != formed->fence)
    broken("all nodes of a round agree on it",
           format("round {}: node {} is told fence {}, and another one {}", message.round, node.index(),
                  text_of_fence(message.fence, message.round), text_of_fence(formed->fence, message.round)));
  if (formed->members.contains(place.node_rank) || !formed->agents.insert(agent).second) {
    broken("node ranks are given once",
           format("round {}: node rank {} or agent {:x} is in it already", message.round, place.node_rank, agent));
  }
  formed->members[place.node_rank] = {agent, node.setup().workers, place.base_rank, "default"};
  if (static_cast<int>(formed->members.size()) == place.node_count) check_ranks(*formed);
}

void Invariants::check_sizes(const Node& node, const PrepareRound& message) const {
  const JobTerms& terms = node.setup().terms;
  const int size = message.place.node_count;
  if (size < terms.min_nodes || size > terms.max_nodes || size % terms.node_unit != 0) {
    broken("sizes are within the terms", format("round {} has {} nodes; --nnodes={}:{} --node_unit={}", message.round,
                                                size, terms.min_nodes, terms.max_nodes, terms.node_unit));
  }
  if (message.restart_count > terms.max_restarts || message.restart_count < 0) {
    broken("restarts stay within the limit",
           format("round {} is restart {} of {}", message.round, message.restart_count, terms.max_restarts));
  }
}

void Invariants::check_ranks(const Formed& formed) const {
  int next = 0;
  for (int rank = 0; rank < formed.place.node_count; ++rank) {
    const auto found = formed.members.find(rank);
    if (found == formed.members.end()) broken("node ranks have no gap", format("node rank {} is nobody's", rank));
    if (found->second.base_rank != next)
      broken("ranks have no gap",
             format("node {} begins with rank {} instead of {}", rank, found->second.base_rank, next));
    next += found->second.workers;
  }
  if (next != formed.place.world_size)
    broken("ranks have no gap", format("{} workers in a world of {}", next, formed.place.world_size));
}

// The members of the last round of this number that have not reported that its workers have ended.
std::vector<AgentId> Invariants::unanswered(const std::string& job, Incarnation incarnation, RoundNumber round) const {
  std::vector<AgentId> silent;
  const RoundKey key{job, incarnation, round};
  const auto formed = rounds_.find(key);
  if (formed == rounds_.end() || formed->second.empty()) return silent;
  const auto said = answered_.find(key);
  for (const auto& [rank, member] : formed->second.back().members) {
    if (said == answered_.end() || !said->second.contains(member.agent)) silent.push_back(member.agent);
  }
  return silent;
}

void Invariants::check_charge(const Node& node, const Stamp& stamp, const PrepareRound& message) const {
  if (!message.charged || message.reason.empty() || message.round == 0) return;
  const auto silent = unanswered(node.setup().job, stamp.incarnation, message.round - 1);
  if (!silent.empty()) {
    broken("a lost node is not charged",
           format("round {} is charged ({}), but agent {:x} of round {} was lost before its stop was over",
                  message.round, message.reason, silent.front(), message.round - 1));
  }
}

void Invariants::sent(const Node& node, AgentId, const Stamp& stamp, const RunWorkers& message) {
  auto found = rounds_.find({node.setup().job, stamp.incarnation, message.round});
  if (found == rounds_.end() || found->second.empty())
    broken("rounds are prepared before they run", format("round {}", message.round));
  Formed& formed = found->second.back();
  if (formed.store && *formed.store != message.store)
    broken("a round has one store",
           format("round {}: ports {} and {}", message.round, formed.store->port, message.store.port));
  formed.store = message.store;
  const auto owner = stores_.find(message.store.port);
  const bool is_of_rank_0 =
      owner != stores_.end() && formed.members.contains(0) && owner->second == formed.members.at(0).agent;
  if (!is_of_rank_0)
    broken("the store is that of rank 0", format("round {}: port {}", message.round, message.store.port));
  news_.insert(node.setup().job);
}

void Invariants::sent(const Node& node, AgentId agent, const Stamp& stamp, const EndJob& message,
                      const Server& server) {
  const JobResult& job_result = message.job_result;
  news_.insert(node.setup().job);
  told_.insert(agent);
  first_given_.try_emplace({node.setup().job, stamp.incarnation, job_result.outcome, job_result.reason}, stamp.term);
  given_by_[{node.setup().job, stamp.incarnation}] = server.start_number();
  if (job_result.restarts_used > node.setup().terms.max_restarts)
    broken("restarts stay within the limit",
           format("{} of {} in the verdict", job_result.restarts_used, node.setup().terms.max_restarts));
  if (job_result.outcome == JobResult::Outcome::kSucceeded) {
    const auto is_it = [&](const World& world) {
      return world.job == node.setup().job && world.incarnation == stamp.incarnation &&
             world.round == job_result.round && world.succeeded == world.world_size;
    };
    if (std::ranges::none_of(simulation_.workers().worlds(), is_it)) {
      broken("success is the success of every worker",
             format("round {} is said to have succeeded to agent {:x}", job_result.round, agent));
    }
  }
  if (job_result.is_deterministic && job_result.restarts_used == 0)
    broken("a deterministic failure has come twice", "no restart was used");
  Term& judge = judges_[{node.setup().job, stamp.incarnation}];
  judge = std::max(judge, stamp.term);
  // The last job result counts: an earlier one may have been lost with its coordinator.
  if (job_result.outcome == JobResult::Outcome::kFailed) {
    told_of_failure_.insert(agent);
  } else {
    told_of_failure_.erase(agent);
  }
  if (job_result.outcome == JobResult::Outcome::kFailed && job_result.reason.empty()) {
    const auto silent = unanswered(node.setup().job, stamp.incarnation, job_result.round);
    if (!silent.empty())
      broken("a lost node is not charged",
             format("the job ends for a failed worker, but agent {:x} of round {} was lost before its stop was over",
                    silent.front(), job_result.round));
    if (job_result.restarts_used != node.setup().terms.max_restarts)
      broken("every restart is used", format("{} of {}", job_result.restarts_used, node.setup().terms.max_restarts));
  }
}

void Invariants::sent(const Node& node, AgentId agent, const Stamp& stamp, const Dismiss& message,
                      const Server& server) {
  if (!told_of_failure_.contains(agent)) return;
  const auto [told, is_first] =
      details_.try_emplace({node.setup().job, stamp.incarnation, server.start_number()}, message.details);
  if (is_first || told->second == message.details) return;
  broken("all hear the same details",
         format("agent {:x} hears \"{}\", others heard \"{}\"", agent, message.details, told->second));
}

// Since an authority only ends, it is enough to look whenever one is given.
void Invariants::one_acts() const {
  std::map<std::pair<std::string, Incarnation>, const Server*> acting;
  for (const Server& server : simulation_.servers()) {
    if (!server.is_up() || server.is_paused() || server.service() == nullptr) continue;
    for (const std::string& job : simulation_.job_names()) {
      const coordinator::Coordinator* const coordinator = server.find(job);
      if (coordinator == nullptr || !coordinator->leader().is_sole_leader(server.clock_ms())) continue;
      const auto [other, is_only] = acting.try_emplace({job, coordinator->incarnation()}, &server);
      if (is_only) continue;
      broken("one coordinator acts at a time",
             format("servers {} and {} act for {}", other->second->number(), server.number(), job));
    }
  }
}

void Invariants::entry_changes(const std::string& before, const std::string& after) const {
  const auto was = discovery::read_entry(before);
  const auto is = discovery::read_entry(after);
  if (!was || !is || was->incarnation != is->incarnation || is->term >= was->term) return;
  broken("an entry never goes back to a leader of a lower term", format("{} takes the place of {}", after, before));
}

// A port is never that of another process, so that what listens has never refused. The peer port of a node that is in
// no round, and has no coordinator, knows nothing of the job. Where the job was begun it may have ended, and begun
// again since. A start of the job whose workers have never run may be replaced while a node hears that it is in its
// first round.
void Invariants::entry_is_replaced(const std::string& entry) const {
  const auto there = discovery::read_entry(entry);
  const auto has_run = [&](const auto& of_job) {
    const auto start = std::ranges::find(of_job.second, there->incarnation, &Begun::incarnation);
    return start != of_job.second.end() && !start->fence.empty();
  };
  if (!there || std::ranges::none_of(begun_, has_run)) return;
  std::vector<discovery::Entry::Place> places = there->next_leaders;
  places.push_back(there->leader);
  for (const discovery::Entry::Place& place : places) {
    for (const Server& server : simulation_.servers()) {
      if (server.listener() != place.port || !server.is_up()) continue;
      const transport::Service& service = *server.service();
      const agent::Agent* const agent = server.node()->agent();
      const bool may_know = service.is_peer_server() ? agent != nullptr && agent->link().may_be_in_round()
                                                     : service.leaves_to_others(server.node()->setup().job);
      if (service.jobs() == 0 && !may_know) continue;
      const coordinator::Coordinator* const job = service.find(server.node()->setup().job);
      if (job != nullptr && !job->round() && job->incarnation() != there->incarnation) continue;
      broken("an entry is replaced only when all of its places have refused", format("port {} listens", place.port));
    }
  }
}

void Invariants::none_runs_twice() const {
  if (simulation_.setup().failover == Setup::Failover::kOff || simulation_.setup().peer_ports_are_shut) return;
  // Two starts hear of each other by the process at the endpoint, or by the file.
  if (!simulation_.first_server().is_up() && !simulation_.setup().is_by_file()) return;
  std::map<std::string, Incarnation> found;
  for (const Server& server : simulation_.servers()) {
    if (!server.is_up() || server.service() == nullptr) continue;
    for (const std::string& job : simulation_.job_names()) {
      const coordinator::Coordinator* const coordinator = server.find(job);
      if (coordinator == nullptr || !coordinator->leader().is_sole_leader(server.clock_ms())) continue;
      const auto [known, is_first] = found.try_emplace(job, coordinator->incarnation());
      if (is_first || known->second == coordinator->incarnation()) continue;
      broken("no job goes on twice", format("incarnations {:x} and {:x} of job {} have coordinators", known->second,
                                            coordinator->incarnation(), job));
    }
  }
}

void Invariants::answered(const Node& node, AgentId agent, Incarnation incarnation, RoundNumber round) {
  answered_[{node.setup().job, incarnation, round}].insert(agent);
}

void Invariants::store_opened(std::uint16_t port, const Node& node) { stores_[port] = node.agent_id(); }

// If no process knows a round any more, the next one need not have the next number.
void Invariants::knowledge_is_lost() {
  for (auto& [key, restarts] : counts_) {
    std::optional<RoundNumber> known;
    for (const Server& server : simulation_.servers()) {
      const coordinator::Coordinator* coordinator = server.is_up() ? server.find(key.first) : nullptr;
      const bool knows = coordinator != nullptr && coordinator->incarnation() == key.second && coordinator->round();
      if (knows) known = std::max(known.value_or(0), *coordinator->round());
    }
    for (const auto& node : simulation_.nodes()) {
      const bool knows = node->is_running() && node->setup().job == key.first && node->agent() != nullptr &&
                         node->agent()->link().own_incarnation() == key.second;
      if (knows) known = std::max(known.value_or(0), node->agent()->lifecycle().joins().facts.round);
    }
    std::erase_if(restarts, [&](const auto& count) { return !known || count.first > *known; });
  }
}

// Without votes a coordinator that has its memory goes on with the nodes that it reaches, however few. If it dies, the
// next one takes over the latest round that it hears of, from a quorum of that: it cannot know of a later one whose
// nodes have had no chance to reach it since it was started (docs/failover.md, "Without votes").
void Invariants::forget_what_was_cut_off(const Node& node, const Stamp& stamp, const PrepareRound& message,
                                         const Server& server) {
  if (simulation_.setup().moves()) return;
  const auto known = counts_.find({node.setup().job, stamp.incarnation});
  if (known == counts_.end()) return;
  for (const auto& other : simulation_.nodes()) {
    const bool knows = other->is_running() && other->setup().job == node.setup().job && other->agent() != nullptr &&
                       other->agent()->link().own_incarnation() == stamp.incarnation &&
                       other->agent()->lifecycle().joins().facts.round >= message.round;
    if (knows && !other->is_cut_off_since(server.started_ms())) return;
  }
  known->second.erase(known->second.lower_bound(message.round), known->second.end());
}

// --- Effects. --------------------------------------------------------------------------------------

void Invariants::workers_start(const Node& node, const agent::StartWorkers& order, Incarnation incarnation) {
  const std::string& job = node.setup().job;
  const Formed* formed = find({job, incarnation, order.round.round}, order.round.membership);
  if (formed == nullptr)
    broken("workers run in a round that was formed", format("node {}, round {}", node.index(), order.round.round));
  const bool is_checked = node.setup().check.when != health::CheckRules::When::kNever;
  if (is_checked && (!node.setup().fit || (node.setup().slow && node.setup().check.excludes_stragglers))) {
    broken("only who is fit trains", format("node {} in round {}", node.index(), order.round.round));
  }
  if (formed->store != order.store)
    broken("a round has one store",
           format("node {} starts round {} with port {}", node.index(), order.round.round, order.store.port));
  auto& restarts = counts_[{job, incarnation}];
  restarts[order.round.round] = order.round.restart_count;
  for (const auto& [round, count] : restarts) {
    const auto later = static_cast<std::int64_t>(order.round.round) - static_cast<std::int64_t>(round);
    const auto more = static_cast<std::int64_t>(order.round.restart_count) - count;
    const bool holds = later >= 0 ? more >= 0 && more <= later : more <= 0 && more >= later;
    if (!holds)
      broken("restarts are counted once and never back",
             format("round {} is restart {}, round {} was {}", order.round.round, order.round.restart_count, round,
                    count));
  }
  check_beginning(node, order.round, incarnation);
  check_fence(node, order.round, incarnation);
  const auto lives = [&](WorkerId id) {
    return simulation_.workers().at(id).alive && counts(simulation_.workers().at(id));
  };
  for (const World& other : simulation_.workers().worlds()) {
    const bool is_another = other.job == job && other.incarnation == incarnation && other.round == order.round.round &&
                            other.membership != order.round.membership;
    if (is_another && std::ranges::any_of(other.workers, lives)) {
      broken("all nodes of a round agree on it", format("two memberships of round {} run at once", other.round));
    }
  }
}

// A coordinator that begins the job with fewer nodes than the most that it may have waits until no worker of an earlier
// start can live. Where nodes elect another coordinator, the earlier start may go on without it.
void Invariants::check_beginning(const Node& node, const PrepareRound& round, Incarnation incarnation) const {
  const JobTerms& terms = node.setup().terms;
  const bool is_most = round.place.node_count == terms.max_nodes / terms.node_unit * terms.node_unit;
  // A later round may be the first whose workers start, since the check has evicted nodes of the first one.
  if (is_most || round.round != 0 || simulation_.setup().failover != Setup::Failover::kOff) return;
  const auto& begun = begun_.at(node.setup().job);
  const auto known = std::ranges::find(begun, incarnation, &Begun::incarnation);
  if (known == begun.end() || !known->fence.empty()) return;
  for (const WorkerId id : simulation_.workers().alive()) {
    const Worker& worker = simulation_.workers().at(id);
    const World& world = simulation_.workers().world_of(worker);
    // The other incarnation may have begun since, with the most nodes that it may have.
    const bool is_earlier = std::ranges::find(begun.begin(), known, world.incarnation, &Begun::incarnation) != known;
    if (world.job != node.setup().job || !is_earlier || !counts(worker)) continue;
    broken("a job begins when no earlier start of it can live",
           format("node {} starts workers with {} nodes, while rank {} of an earlier start lives on node {}",
                  node.index(), round.place.node_count, worker.rank, worker.node));
  }
}

// Fences grow within an incarnation, and those of an incarnation are above all of one that formed its first round
// earlier. A coordinator without a memory may take up an earlier incarnation again: a storage refuses its workers.
// Where two incarnations live side by side, and the earlier one gets a node of the later one, it goes above that: then
// it is the later one's workers that a storage refuses.
// Where no votes count, the nodes that know of the latest round may be gone when a coordinator finds others.
void Invariants::check_fence(const Node& node, const PrepareRound& round, Incarnation incarnation) {
  const std::string fence = text_of_fence(round.fence, round.round);
  auto& begun = begun_[node.setup().job];
  const auto own = std::ranges::find(begun, incarnation, &Begun::incarnation);
  const Setup& setup = simulation_.setup();
  const bool nobody_votes = setup.failover == Setup::Failover::kOff || node.setup().terms.max_nodes == 1;
  if (nobody_votes && own != begun.end() && fence < own->fence && !is_known(node.setup().job, *own)) own->fence.clear();
  for (auto other = begun.begin(); other != begun.end(); ++other) {
    const bool grows = other == own ? fence >= other->fence : fence > other->fence;
    // The one case that votes leave open: the other start of the job went on when this one had begun.
    const bool are_side_by_side = simulation_.setup().failover != Setup::Failover::kOff && own != begun.end() &&
                                  other != own && other->started_ms > own->formed_ms;
    if (!grows && !are_side_by_side)
      broken("fences of started workers only grow",
             format("node {} starts workers with fence {}, after others with {}", node.index(), fence, other->fence));
    if (other == own) break;
  }
  if (own == begun.end()) return;
  own->fence = fence;
  own->last = {round.fence.term, round.round};
  own->started_ms = simulation_.now_ms();
  const auto is_above = [&](const Begun& other) { return fence > other.fence && !other.fence.empty(); };
  std::rotate(own, own + 1, std::find_if_not(own + 1, begun.end(), is_above));
}

// A process knows of the round whose workers were started last.
bool Invariants::is_known(const std::string& job, const Begun& begun) const {
  const auto server_knows = [&](const Server& server) {
    const coordinator::Coordinator* coordinator = server.is_up() ? server.find(job) : nullptr;
    return coordinator != nullptr && coordinator->incarnation() == begun.incarnation && coordinator->round() &&
           std::pair(coordinator->term(), *coordinator->round()) >= begun.last;
  };
  const auto node_knows = [&](const auto& node) {
    if (!node->is_running() || node->setup().job != job || node->agent() == nullptr) return false;
    const protocol::AgentFacts facts = node->agent()->lifecycle().joins().facts;
    return node->agent()->link().own_incarnation() == begun.incarnation &&
           std::pair(facts.transferred.term(), facts.round) >= begun.last;
  };
  return std::ranges::any_of(simulation_.servers(), server_knows) ||
         std::ranges::any_of(simulation_.nodes(), node_knows);
}

void Invariants::worker_started(WorkerId id) { check_alone(id); }

// A worker counts unless no process can kill it (see the class), or none could until just now.
bool Invariants::counts(const Worker& worker) const {
  const Node& node = *simulation_.nodes()[static_cast<std::size_t>(worker.node)];
  if (!simulation_.network().is_up(node.host()) || simulation_.network().is_frozen(node.host())) return false;
  if (node.is_unguarded()) return false;
  const auto since = killable_since_.find(worker.node);
  return since == killable_since_.end() || simulation_.now_ms() >= since->second + kKillMs;
}

void Invariants::check_alone(WorkerId id) const {
  const Workers& workers = simulation_.workers();
  const Worker& mine = workers.at(id);
  const World& world = workers.world_of(mine);
  if (!mine.alive || !counts(mine)) return;
  for (const WorkerId other : workers.alive()) {
    const Worker& its = workers.at(other);
    if (other == id) continue;
    const World& of = workers.world_of(its);
    if (of.round == world.round && of.membership == world.membership && its.rank != mine.rank) continue;
    if (of.job != world.job || of.incarnation != world.incarnation || !counts(its)) continue;
    broken(its.rank == mine.rank ? "no rank lives twice" : "no two rounds live at once",
           format("rank {} of round {} on node {} and of round {} on node {}", mine.rank, world.round, mine.node,
                  of.round, its.node));
  }
}

void Invariants::workers_can_be_killed(const Node& node) {
  killable_since_[node.index()] = simulation_.now_ms();
  simulation_.timeline().after(kKillMs, [this, index = node.index()] {
    for (const WorkerId id : simulation_.workers().alive()) {
      if (simulation_.workers().at(id).node == index) check_alone(id);
    }
  });
}

void Invariants::agent_finished(const Node& node, const agent::Finish& end) {
  const JobResult& job_result = end.job_result;
  if (!end.details.empty() &&
      (job_result.outcome != JobResult::Outcome::kFailed || !end.details.starts_with("details of agent "))) {
    broken("details are of the first failure",
           format("node {} ends with: {}; {}", node.index(), text(job_result), end.details));
  }
  news_.insert(node.setup().job);
  if (node.has_workers() && job_result.left_behind.empty()) {
    for (const WorkerId id : simulation_.workers().alive()) {
      const Worker& worker = simulation_.workers().at(id);
      if (worker.node == node.index() && worker.launch == node.launch())
        broken("nobody leaves workers behind", format("node {}: rank {}", node.index(), worker.rank));
    }
  }
  // An agent that ends for a reason of its own says nothing about the job.
  const bool gave_up = job_result.reason.starts_with(agent::kLostCoordinator) ||
                       job_result.reason.starts_with(agent::kFoundNoCoordinator);
  if (gave_up && node.gave_up_in_vain()) {
    broken("who gives up had no chance",
           format("node {} ends with: {}; {}", node.index(), text(job_result), *node.gave_up_in_vain()));
  }
  if (node.was_signalled() || node.lost_its_guardian() || gave_up || turned_away_.contains(node.agent_id())) return;
  // The node's workers have succeeded, and it has waited for the others long enough. They may fail after that.
  if (job_result.outcome == JobResult::Outcome::kSucceeded && !told_.contains(node.agent_id())) return;
  const agent::Link& link = node.agent()->link();
  // The job was started again and stopped by an operator before it met a node of the earlier start, which has a job
  // result.
  const bool was_in_no_round = node.agent()->lifecycle().joins().facts.membership == 0;
  const bool was_ordered =
      job_result.outcome == JobResult::Outcome::kStopped && job_result.reason == "stopped by an operator";
  if (was_in_no_round && was_ordered) return;
  const Incarnation incarnation = link.own_incarnation() != 0 ? link.own_incarnation() : link.incarnation();
  // A coordinator that is cut off from most nodes may end the job for the others, while those have another one. Its job
  // result may be passed on by a later one.
  const auto given = first_given_.find({node.setup().job, incarnation, job_result.outcome, job_result.reason});
  const Term by = given != first_given_.end() ? given->second : link.term();
  const Term elected = simulation_.setup().moves() ? by : 0;
  auto& outcomes = outcomes_[{node.setup().job, incarnation}][elected];
  const bool is_another = !outcomes.empty() && !outcomes.contains(job_result.outcome);
  // Only this agent has the job result of a dead coordinator, and was cut off until another one had ended the job.
  const auto judge = judges_.find({node.setup().job, incarnation});
  if (is_another && judge != judges_.end() && judge->second > link.term()) {
    if (!node.gave_up_in_vain()) return;
    broken("who gives up had no chance",
           format("node {} ends with: {}; {}", node.index(), text(job_result), *node.gave_up_in_vain()));
  }
  outcomes[job_result.outcome] = node.index();
  if (outcomes.size() > 1) {
    broken("one verdict for all",
           format("node {} ends with: {}; node {} with another", node.index(), text(job_result),
                  outcomes.begin()->second == node.index() ? outcomes.rbegin()->second : outcomes.begin()->second));
  }
}

void Invariants::look_for_witnesses() {
  for (const auto& [key, number] : given_by_) {
    const auto gave_it = [&, number = number](const Server& server) {
      return server.is_up() && server.start_number() == number;
    };
    if (std::ranges::any_of(simulation_.servers(), gave_it)) continue;
    const auto heard = [&](const auto& node) {
      return node->is_running() && node->setup().job == key.first && node->agent()->lifecycle().has_job_result() &&
             node->agent()->link().own_incarnation() == key.second;
    };
    if (std::ranges::none_of(simulation_.nodes(), heard)) outcomes_.erase(key);
  }
}

// --- The end. --------------------------------------------------------------------------------------

void Invariants::settled(Ms since_ms) {
  none_runs_twice();
  for (const auto& node : simulation_.nodes()) {
    if (!node->is_running()) continue;
    const std::string& job = node->setup().job;
    if (news_.contains(job) || simulation_.state_of(job) == JobState::kRunning) continue;
    broken("a round or a verdict in time",
           format("job {} has neither for {} ms after the last fault; it is {}, and node {} waits", job,
                  simulation_.now_ms() - since_ms, name(simulation_.state_of(job)), node->index()));
  }
}

void Invariants::ended() {
  for (const auto& node : simulation_.nodes()) {
    if (node->is_running())
      broken("every agent comes to its end",
             format("node {} waits at {} ms, its job is {}", node->index(), simulation_.now_ms(),
                    name(simulation_.state_of(node->setup().job))));
  }
  if (!simulation_.workers().alive().empty()) {
    const Worker& worker = simulation_.workers().at(simulation_.workers().alive().front());
    broken("no worker is left", format("rank {} of round {} on node {}", worker.rank,
                                       simulation_.workers().world_of(worker).round, worker.node));
  }
}

void Invariants::time_goes_on() {
  steps_at_once_ = simulation_.now_ms() == last_ms_ ? steps_at_once_ + 1 : 0;
  last_ms_ = simulation_.now_ms();
  constexpr int kMost = 50'000;
  if (steps_at_once_ > kMost) broken("time goes on", format("{} steps at once", steps_at_once_));
}

void Invariants::look_at_sizes() {
  // Each node may have one session, a dead one that was not noticed yet, its guardian's, and clients of other
  // protocols.
  const std::size_t most = 8 * simulation_.nodes().size() + 64;
  for (const Server& server : simulation_.servers()) {
    const transport::Service* service = server.service();
    if (service == nullptr) continue;
    if (service->connections() > most)
      broken("memory is bounded by the nodes",
             format("{} connections of {} nodes", service->connections(), simulation_.nodes().size()));
    if (service->jobs() > 2) broken("memory is bounded by the nodes", format("{} jobs", service->jobs()));
  }
}

}  // namespace elastic::simulation
