#include "rendezvous/election/follower.h"

#include <utility>

namespace elastic::election {

Follower::Attempt Follower::next_peer(std::int64_t now_ms) {
  std::optional<PeerTarget> to = search_.next(vote_.free_at_ms(now_ms), now_ms);
  return {std::move(to), search_.patience_ms(now_ms)};
}

bool Follower::refused(const Node& node, std::int64_t now_ms) {
  return refusal_is_proof_ && search_.has_asked_the_lost() && proves_death(node, now_ms);
}

Follower::Welcomed Follower::welcomed(const protocol::Welcome& welcome, bool is_same_place, const Node& node,
                                      std::int64_t now_ms) {
  if (refusal_is_proof_ && is_same_place && search_.is_replaced_by(welcome.host)) {
    // The next leaders are asked first, in their order, so that all nodes vote for the same one.
    return {"another process listens at its port", proves_death(node, now_ms), true};
  }
  if (search_.shuns(welcome.host)) return {"the one that answers there has stood in vain", false, true};
  // This node's vote is of no use to a candidate of another start of the job.
  const bool is_other_start = node.belongs_to != 0 && welcome.incarnation != node.belongs_to;
  if (is_other_start && welcome.good_for_ms == 0) return {"a candidate of another start of the job answers there"};
  vote_.welcomed(welcome, now_ms);
  search_.meets(welcome.host);
  return {};
}

std::optional<Follower::LeaseAck> Follower::lease_granted(const protocol::Welcome& welcome,
                                                          const protocol::Grant& grant, std::int64_t now_ms) {
  if (grant.is_lease) search_.end();
  if (!grant.asks_vote) vote_.granted_unasked();
  return grant.asks_vote ? vote_.lease_granted(welcome, now_ms) : std::nullopt;
}

bool Follower::on_prepare_round(const protocol::PrepareRound& round, const protocol::Welcome& welcome,
                                std::int64_t now_ms) {
  vote_.hears(round, welcome.incarnation);
  search_.knows(round.next_leaders);
  is_bound_ = round.next_leaders.empty();
  refusal_is_proof_ = round.refusal_is_proof;
  if (is_bound_) {
    vote_.granted_unasked();  // nobody could be elected after it: votes do not count
  } else {
    vote_.prepares(welcome, now_ms);
  }
  return !round.before.empty();
}

void Follower::on_next_round(const protocol::NextRound& next, const protocol::Welcome& welcome) {
  vote_.hears(next, welcome.incarnation);
}

void Follower::leaves(const protocol::Welcome* told) {
  search_.is_done();
  if (told != nullptr) vote_.leaves(*told);
}

bool Follower::proves_death(const Node& node, std::int64_t now_ms) {
  return vote_.died(search_.rank_of_the_lost(), node.holds_lease, node.runs_workers, now_ms);
}

}  // namespace elastic::election
