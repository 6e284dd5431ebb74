#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "health/messages/messages.h"
#include "health/probe/exchange.h"
#include "health/probe/external.h"
#include "health/probe/gpu_node.h"
#include "health/probe/ring.h"

// The process that checks one host before training. It measures the host, makes tests with the probes of other hosts,
// two at a time and in a ring, and runs one process for each GPU.
namespace elastic::health {

struct ProbeSettings {
  std::int64_t connect_ms = 5000;  // the time to connect to another node, if no tests come before
  std::int64_t hello_ms = 5000;    // the time in which a probe that has connected must send its hello
  // How much longer another node is waited for, for each test that comes before. That test may take longer on a bad
  // link, and then a later stage tries again.
  std::int64_t busy_ms = 2500;
  std::int64_t test_ms = 30000;  // the time for a test once both nodes are connected
  ExchangeSettings exchange = {};
  RingSettings ring = {};
  ExternalProbe external = {};  // makes the tests of two nodes instead of the exchange
  GpuSettings gpu = {};         // GPUs are tested beside the exchange
  // Returns the findings about the host that were not returned before. Called at the end of each phase in which this
  // node does something; may be empty. A fatal finding makes the host unhealthy.
  std::function<std::vector<Finding>()> look_at_host = {};
  bool mock_error = false;  // DLRover's MOCK_ERR_RANK: each test is made and then reported as failed
};

// Serves one check over `channel`, a connected stream socket, in lines of health/messages: it opens a port, measures
// the host and writes a SelfResult. Then it answers each PairOrders with PairResults, which have the tests in the same
// order, and each RingOrder with a RingResult; a line that cannot be read is answered by PairResults without tests.
// Returns the exit status: 0 when the other end has closed, 1 when the channel fails or a line is too long.
int run_probe(int channel, const ProbeSettings& settings);

}  // namespace elastic::health
