#include "tests/simulation/company.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "rendezvous/election/voter_set.h"
#include "src/base/text.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

namespace {

const std::vector<protocol::KnownRound>& known_to(const Node& node) {
  return node.agent()->link().follower().rounds().rounds();
}

// The node belongs to the job still, and looks for a coordinator.
bool looks(const Node& node) {
  return node.is_running() && node.agent() != nullptr && !node.was_signalled() &&
         !node.agent()->lifecycle().has_job_result() && !node.agent()->link().follower().has_left();
}

protocol::Incarnation incarnation_of(const Node& node) {
  const agent::Link& link = node.agent()->link();
  return link.own_incarnation() != 0 ? link.own_incarnation() : link.incarnation();
}

bool knows(const Node& node, const Node& candidate) {
  const auto& next_leaders = node.agent()->link().follower().next_leaders();
  return std::ranges::find(next_leaders, candidate.agent_id(), &protocol::NextLeader::agent) != next_leaders.end();
}

// With the votes of these nodes one of them is elected, whichever others of `all` vote, too.
bool are_enough(const std::vector<const Node*>& voters, const std::vector<const Node*>& all) {
  // The rounds that may be the last one, as the node knows them that has heard of the latest.
  std::vector<protocol::KnownRound> rounds;
  for (const Node* each : all) {
    const auto& its = known_to(*each);
    if (!its.empty() && (rounds.empty() || its.back().round > rounds.back().round)) rounds = its;
  }
  // Until the first round has run nobody can be elected.
  bool has_run = rounds.size() > 1;
  for (const protocol::KnownRound& known : rounds) {
    std::vector<int> ranks;
    for (const Node* each : voters) {
      const auto& its = known_to(*each);
      const auto same = std::ranges::find(its, known.round, &protocol::KnownRound::round);
      if (same == its.end()) continue;
      has_run = has_run || same->has_run;
      if (same->rank) ranks.push_back(*same->rank);
    }
    const election::VoterSet voter_set(known.round.node_count,
                                       known.round.tie_breaker ? election::TieBreaker::node(*known.round.tie_breaker)
                                                               : election::TieBreaker::nobody());
    if (!voter_set.is_quorum(ranks)) return false;
  }
  return has_run;
}

}  // namespace

std::optional<Ms>& Company::since(int a, int b) {
  const auto low = static_cast<std::size_t>(std::min(a, b));
  const auto high = static_cast<std::size_t>(std::max(a, b));
  if (since_ms_.size() <= high) since_ms_.resize(high + 1);
  if (since_ms_[high].size() <= low) since_ms_[high].resize(high + 1);
  return since_ms_[high][low];
}

bool Company::are_together(const Node& a, const Node& b) const {
  const auto awake = [](const Node& node) { return node.is_running() && !node.is_disturbed(); };
  return awake(a) && awake(b) && a.setup().job == b.setup().job && simulation_.network().reaches(a.host(), b.host());
}

void Company::look() {
  const auto& nodes = simulation_.nodes();
  for (std::size_t b = 0; b < nodes.size(); ++b) {
    for (std::size_t a = 0; a <= b; ++a) {
      std::optional<Ms>& began_ms = since(static_cast<int>(a), static_cast<int>(b));
      const bool together = are_together(*nodes[a], *nodes[b]);
      if (together == began_ms.has_value()) continue;
      began_ms = together ? std::optional(simulation_.now_ms()) : std::nullopt;
    }
  }
}

void Company::has_acted(const Server& server) {
  for (const std::string& job : simulation_.job_names()) {
    const coordinator::Coordinator* const coordinator = server.find(job);
    if (coordinator != nullptr && coordinator->leader().is_sole_leader(server.clock_ms()))
      led_ms_[job] = simulation_.now_ms();
  }
}

void Company::falls_silent(const Server& server) {
  for (const std::string& job : simulation_.job_names()) {
    const coordinator::Coordinator* const candidate = server.find(job);
    if (candidate != nullptr && !candidate->may_act()) led_ms_[job] = simulation_.now_ms();
  }
}

std::optional<std::string> Company::chance(const Node& node, Ms from_ms) const {
  const auto led = led_ms_.find(node.setup().job);
  if (led != led_ms_.end() && led->second > from_ms) return {};
  const auto were_together = [&](int a, int b) {
    const auto began_ms = const_cast<Company*>(this)->since(a, b);
    return began_ms && *began_ms <= from_ms;
  };
  std::vector<const Node*> company;
  std::vector<const Node*> all;  // nodes that are in no round may have heard of the latest
  for (const auto& other : simulation_.nodes()) {
    if (other->is_running() && incarnation_of(*other) == incarnation_of(node)) all.push_back(other.get());
    if (!looks(*other) && other.get() != &node) continue;
    const auto waits = waits_until_ms_.find(other->agent_id());
    if (waits != waits_until_ms_.end() && waits->second > from_ms) continue;
    if (other->agent()->link().own_incarnation() != node.agent()->link().own_incarnation()) continue;
    if (!were_together(node.index(), other->index())) continue;
    if (std::ranges::all_of(company, [&](const Node* each) { return were_together(each->index(), other->index()); }))
      company.push_back(other.get());
  }
  // Nodes that know a candidate's peer port find it, whatever else they know.
  for (const Node* candidate : company) {
    std::vector<const Node*> voters;
    std::ranges::copy_if(company, std::back_inserter(voters),
                         [&](const Node* each) { return knows(*each, *candidate); });
    if (std::ranges::find(voters, &node) == voters.end() || !are_enough(voters, all)) continue;
    return format("{} nodes have reached each other since {} ms, a quorum of each round that may be the last",
                  voters.size(), from_ms);
  }
  return {};
}

}  // namespace elastic::simulation
