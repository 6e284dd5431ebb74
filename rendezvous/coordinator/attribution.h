#pragma once

#include <string>
#include <vector>

#include "rendezvous/protocol/messages.h"

// What is named as the cause when several things went wrong in one round: a lost node first, since the
// others' workers fail of it within milliseconds, long before it is known; then the failures in the order below.
namespace elastic::coordinator {

// A node that was given up.
struct LostNode {
  int node_rank = 0;
  std::string address;  // how it calls itself; may be empty
  std::string how;      // as a clause: "its connection was reset"
};

// "node 2 (10.0.0.7) was lost: its connection was reset"
std::string text(const LostNode& node);

// The likeliest cause first: what failed by itself before what ended after it was told to; killed (by a
// signal or for memory), traceback, other, communication; the earlier; the lower rank. Otherwise the order stays.
void order_by_cause(std::vector<protocol::WorkerFailure>& failures);

// What is to be blamed, as a sentence without its full stop: the lost nodes, else the first of the failures (in the
// order of order_by_cause); empty without either.
std::string name_of_cause(const std::vector<LostNode>& lost, const std::vector<protocol::WorkerFailure>& failures);

}  // namespace elastic::coordinator
