#pragma once

#include <cstdint>
#include <optional>

namespace elastic::election {

// How a keep-alive is answered.
struct Grant {
  std::optional<std::int64_t> good_for_ms = {};  // of the lease; empty: without limit
  bool asks_vote = false;                        // the node is to vote by a lease ack
  bool is_lease = true;                          // else it only asks, with 0 ms, and a lease may follow
};

}  // namespace elastic::election
