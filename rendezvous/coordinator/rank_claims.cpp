#include "rendezvous/coordinator/rank_claims.h"

#include <algorithm>
#include <string>
#include <utility>

#include "rendezvous/coordinator/limits.h"
#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using protocol::AgentId;
using protocol::NodeId;
using protocol::Rejected;

namespace {

// How long a node may take to answer AreYouThere when another node asks for its rank.
constexpr std::int64_t kAskMs = 1000;

// "; 1 is free", or nothing.
std::string free_rank(const protocol::NodeJoins& newcomer, const membership::Roster& roster) {
  for (int rank = 0; rank < newcomer.terms.max_nodes; ++rank) {
    const bool is_claimed = std::ranges::any_of(roster.nodes(), [rank](const auto& entry) {
      return entry.second.claimed_rank == rank || entry.second.slot == rank;
    });
    if (!is_claimed) return format("; {} is free", rank);
  }
  return {};
}

Rejected holder_lives(const protocol::NodeJoins& newcomer, const membership::Node& holder,
                      const membership::Roster& roster) {
  return {Rejected::Why::kRankTaken,
          format("{} and is alive; give each node a rank of its own{}", asked_for_rank(newcomer, holder),
                 free_rank(newcomer, roster)),
          {}};
}

}  // namespace

std::string asked_for_rank(const protocol::NodeJoins& newcomer, const membership::Node& holder) {
  return format("{} asks for rank {}, but {} has it", newcomer.address.empty() ? "this node" : newcomer.address,
                *newcomer.node_rank, holder.name());
}

RankClaims::Answer RankClaims::claim(NodeId session, const protocol::NodeJoins& message,
                                     const membership::Roster& roster, std::int64_t now_ms) {
  if (!message.node_rank) return {};
  for (const auto& [agent, node] : roster.nodes()) {
    if (agent == message.agent || node.claimed_rank != message.node_rank || !node.session) continue;
    if (waiting_.size() >= limits::kHeldNodes) {
      return {.refusal =
                  Rejected{Rejected::Why::kRankTaken,
                           format("{} nodes wait already for ranks that other nodes have", waiting_.size()), kAskMs}};
    }
    waiting_.push_back({session, message, agent, node.heard, now_ms + kAskMs});
    return {.asked = &node};
  }
  return {};
}

std::optional<RankClaims::Settled> RankClaims::settle(std::size_t& position, const membership::Roster& roster,
                                                      std::int64_t now_ms) {
  for (; position < waiting_.size(); ++position) {
    const Waiting& waiting = waiting_[position];
    const auto found = roster.nodes().find(waiting.holder);
    const membership::Node* holder = found == roster.nodes().end() ? nullptr : &found->second;
    const bool is_gone = holder == nullptr || !holder->session;
    const bool lives = !is_gone && holder->heard > waiting.heard_before;
    if (!is_gone && !lives && now_ms < waiting.until_ms) continue;
    Settled settled{.session = waiting.session,
                    .message = waiting.message,
                    .holder = waiting.holder,
                    .holder_is_silent = !is_gone && !lives};
    if (lives) settled.refusal = holder_lives(waiting.message, *holder, roster);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(position));
    return settled;
  }
  return {};
}

bool RankClaims::withdraw(NodeId session) {
  return std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.session == session; }) > 0;
}

bool RankClaims::is_waiting(NodeId session) const {
  return std::ranges::find(waiting_, session, &Waiting::session) != waiting_.end();
}

std::vector<NodeId> RankClaims::dismiss_all() {
  std::vector<NodeId> sessions;
  for (const Waiting& waiting : std::exchange(waiting_, {})) sessions.push_back(waiting.session);
  return sessions;
}

std::optional<std::int64_t> RankClaims::deadline_ms() const {
  if (waiting_.empty()) return {};
  return std::ranges::min_element(waiting_, {}, &Waiting::until_ms)->until_ms;
}

void RankClaims::check_invariants(const membership::Roster& roster) const {
  ELASTIC_CHECK(waiting_.size() <= limits::kHeldNodes);
  for (const Waiting& waiting : waiting_) {
    ELASTIC_CHECK(roster.of_session(waiting.session) == nullptr);
    ELASTIC_CHECK(waiting.message.node_rank);
  }
}

std::vector<AgentId> newcomers_with_claim(const membership::Roster& roster, int rank) {
  std::vector<AgentId> found;
  for (const auto& [agent, node] : roster.nodes()) {
    const bool is_newcomer = node.member_state() == membership::MemberState::kReady && !node.slot;
    if (is_newcomer && node.claimed_rank == rank) found.push_back(agent);
  }
  return found;
}

}  // namespace elastic::coordinator
