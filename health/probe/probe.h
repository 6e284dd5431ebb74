#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "health/messages/messages.h"
#include "health/probe/exchange.h"
#include "health/probe/external.h"
#include "health/probe/gpu_node.h"
#include "health/probe/ring.h"

// The process that checks one host before training, its GPUs by processes of theirs: it measures the host, then meets
// the probes of other hosts in tests of two, and all of them in a ring.
namespace elastic::health {

struct ProbeSettings {
  std::int64_t connect_ms = 5000;  // in which another must be connected, where no tests come before
  std::int64_t hello_ms = 5000;    // in which who has connected must say who it is
  // That a test which comes before is taken to last, where another is waited for: it may last longer where a way is
  // bad, and then a later stage tries again.
  std::int64_t busy_ms = 2500;
  std::int64_t test_ms = 30000;  // in which a test must end once both are connected
  ExchangeSettings exchange = {};
  RingSettings ring = {};
  ExternalProbe external = {};  // in the place of the exchange
  GpuSettings gpu = {};         // tested beside the exchange, where there are any
  // What else is to be known of the host, asked at the end of each phase in which it does something: what was not told
  // before. One that is fatal makes the host unfit. May be none.
  std::function<std::vector<Finding>()> look_at_host = {};
  bool mock_error = false;  // DLRover's MOCK_ERR_RANK: each test is made, and reported as failed
};

// Serves one check over `channel`, a connected stream socket, in lines of health/messages: opens a port, measures and
// writes a SelfResult; then answers each line of PairOrders with one of PairResults, with the tests in the same order,
// and one of a RingOrder with a RingResult. A line that cannot be read is answered with no results. Returns an exit
// status: 0 when the other end has closed, 1 when the channel fails or a line is longer than any of ours.
int run_probe(int channel, const ProbeSettings& settings);

}  // namespace elastic::health
