#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace elastic::evidence {

// | an answer of NCCL's RAS before its report | {kRasLineBytes} | it is refused, with the reason |
inline constexpr std::size_t kRasLineBytes = 1024;

// A client's side of NCCL's RAS protocol (CLIENT PROTOCOL 2: NCCL 2.24 to 2.30), as values: whoever has a connection to
// NCCL_RAS_ADDR sends what start() and feed() return, and gives what arrives. One client asks once.
class RasClient {
 public:
  // Seconds that RAS itself may wait for each of its processes.
  explicit RasClient(int timeout_s) : timeout_s_(timeout_s) {}

  // What to send first.
  std::string start() const;
  // Takes bytes as they have come, and returns what to send next, which may be nothing. Fails if this is no RAS, if it
  // refuses to report, and above the bounds of a report; then there is nothing more to ask.
  Result<std::string> feed(std::string_view bytes);
  // The other side has closed the connection: this ends a report. Fails if it has not begun. A report that broke off
  // is told by whoever reads it.
  Result<std::string> closed();
  // The time that the caller had is over: the error says what was waited for.
  Error late() const;

 private:
  enum class State : std::uint8_t { kGreeting, kTimeout, kFormat, kReport, kOver };

  Result<std::string> answered(std::string_view line);
  std::unexpected<Error> give_up(std::string reason, std::string remedy = {});

  int timeout_s_;
  State state_ = State::kGreeting;
  std::string received_;  // of the line that is not complete, or of the report
};

}  // namespace elastic::evidence
