#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "health/evidence/flight_recorder.h"
#include "src/base/result.h"
#include "src/net/http/reader.h"

// The control server of a worker, as values: what PyTorch's worker_main() serves at TORCH_WORKER_SERVER_SOCKET, which
// is HTTP/1.1 over a Unix socket (torch 2.4 and later). Threads of C++ answer, whatever Python does.
namespace elastic::evidence {

// Its handlers that dump a flight recorder as JSON: NCCL's (torch 2.5 and later), and that of all other backends (2.8
// and later).
inline constexpr std::array<std::string_view, 2> kRecorderHandlers = {"dump_nccl_trace_json", "fr_trace_json"};

// All bytes of a request, whose answer ends the connection.
std::string control_request(std::string_view handler);

// Reads the answer to one such request.
class ControlAnswer {
 public:
  // A dump; nothing: the server has no such handler. Fails on what is no dump, or exceeds the bounds of one.
  using Dump = Result<std::optional<FlightFacts>>;

  // Takes bytes as they have come. Nothing: there is more to come. Else it is not to be called again.
  std::optional<Dump> feed(std::string_view bytes);
  // The other side has closed the connection, and the answer ends there, or is cut off.
  Dump closed();

 private:
  Dump read(net::http::ResponseReader::Step step);

  net::http::ResponseReader reader_ = net::http::ResponseReader(kFlightJsonBytes);
};

// What both recorders of a process say, as one: the groups of `others` behind those of NCCL.
FlightFacts of_both_recorders(FlightFacts nccl, FlightFacts others);

}  // namespace elastic::evidence
