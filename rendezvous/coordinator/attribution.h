#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.h"

// What is named as the cause when several things went wrong in one round. RoundStop names a lost node first, since the
// workers of the other nodes fail within milliseconds of its death, long before the coordinator knows of it; then come
// the failures in the order of order_by_cause().
namespace elastic::coordinator {

// A node that was declared lost.
struct LostNode {
  int node_rank = 0;
  std::string address;  // the name that the node gives itself; may be empty
  std::string how;      // a clause: "its connection was reset"
};

// "node 2 (10.0.0.7) was lost: its connection was reset"
std::string text(const LostNode& node);

// Sorts the likeliest cause first: workers that failed by themselves before those that ended after they were told to;
// then the rank for whose error file the round was stopped, if that is known, since it takes its time to end while the
// others fail for want of their peers; then by kind (killed, traceback, other, communication), by the time at which
// they failed, by rank. The sort is stable.
void order_by_cause(std::vector<protocol::WorkerFailure>& failures, std::optional<int> stopped_for = {});

}  // namespace elastic::coordinator
