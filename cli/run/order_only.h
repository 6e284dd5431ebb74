#pragma once

#include <string>

#include "cli/run/http_place.h"
#include "rendezvous/coordinator/coordinator_events.h"

namespace elastic::run {

// An operator's order (--drain, --stop), and where to send it.
struct OrderRequest {
  HttpPlace place = {};
  std::string secret = {};  // the job's; empty: the job has none
  std::string run_id = {};  // the job; empty: the only one there
  coordinator::OperatorOrder order = {};
  std::string input = {};  // the flag as it was typed, for errors
};

// Sends the order to an elastic-run, and prints to stdout what will happen. Returns the exit status: 0 if the order was
// accepted, or 1 with the reason on stderr.
int give_order(const OrderRequest& request);

}  // namespace elastic::run
