#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "rendezvous/election/voter_set.h"

namespace elastic::election {

// Until when the voters for a coordinator are a quorum of one round, and whether a quorum has heard of the next one.
// Members are named by node rank. Times are milliseconds of the coordinator's clock. A renewal costs O(log n) for a
// round of n nodes and allocates nothing, since each of ten thousand nodes renews each second.
class QuorumTracker {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::max();

  explicit QuorumTracker(VoterSet voter_set);

  // The member votes for the coordinator until then. An earlier vote is never shortened.
  void votes_until(int rank, std::int64_t until_ms);
  // The member has heard of the round that is prepared.
  void hears(int rank);
  // No round is prepared any more.
  void forget_hearers();
  // The member is proven dead, and voted for the coordinator when it died: it can never vote for another one, and never
  // tell anybody that it has not heard of a round. So it counts for ever as a voter that has heard of every round.
  void died(int rank);

  // When the voters will be no quorum any more, unless they renew; kNever if they are none now, kAlways if they always
  // will be one.
  std::int64_t ends_ms() const;
  // The members that have heard of the next round are a quorum, and any later quorum has one of them. `host_rank`: of
  // the node that hosted the coordinator which formed the round, the tie-breaker of a later election; empty: none did.
  bool has_heard(std::optional<int> host_rank) const;

 private:
  using Entry = std::pair<std::int64_t, int>;  // until when, node rank

  VoterSet voter_set_;
  std::vector<std::int64_t> until_ms_;  // by node rank
  std::vector<bool> heard_;             // by node rank
  std::vector<bool> dead_;              // by node rank
  int hearers_ = 0;
  // The members that count: the smallest majority, those whose votes last longest, and the others.
  std::set<Entry> longest_;
  std::set<Entry> others_;
};

}  // namespace elastic::election
