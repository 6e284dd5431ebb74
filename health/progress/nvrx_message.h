#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/base/result.h"

// The messages of NVRx's fault tolerance (nvidia-resiliency-ext 0.1.3 and later, fault_tolerance/data.py) between a
// rank and its monitor, and between a rank and its launcher. Each is a pickled object behind its length: 4 bytes, the
// highest first.
namespace elastic::progress::nvrx {

inline constexpr std::size_t kLengthBytes = 4;

// What a rank says.
struct Authkey {
  bool operator==(const Authkey&) const = default;
};
struct Init {
  bool operator==(const Init&) const = default;
};
struct Heartbeat {
  bool operator==(const Heartbeat&) const = default;
};
struct Section {
  enum class Action : std::uint8_t { kOpen = 1, kClose = 2, kCloseAll = 3 };
  Action action = Action::kOpen;
  std::string name = {};                       // empty with kCloseAll
  std::optional<std::int64_t> iteration = {};  // of the training; clients up to 0.4 have none
  bool operator==(const Section&) const = default;
};
// Limits that the client has learned, in seconds.
struct Timeouts {
  bool operator==(const Timeouts&) const = default;
};
using Message = std::variant<Authkey, Init, Heartbeat, Section, Timeouts>;

// What a rank asks of its launcher.
struct Request {
  enum class Action : std::uint8_t { kContinue = 0, kExcludeThisNode = 1, kShutdownWorkload = 2 };
  Action action = Action::kContinue;
  std::string description = {};
  std::string rank = {};  // as the client says it
  bool operator==(const Request&) const = default;
};

// Reads a pickled message, without its length. Fails on everything else, with the reason.
Result<Message> read_message(std::string_view pickle);
Result<Request> read_request(std::string_view pickle);

// The length of a message, by its first kLengthBytes bytes.
std::size_t length_of(std::string_view bytes);

// What its monitor answers, with the length before it.
std::string ok();
// To Init: the monitor's settings. No limit is set, the client waits for the answer to each message, and knows these
// sections, which must be UTF-8.
std::string ok_with_settings(const std::vector<std::string>& sections);
// The client raises an exception with this text.
std::string error(std::string_view cause);
// What the launcher answers: it will be done, or (the client raises an exception with the text) why not.
std::string accepted();
std::string declined(std::string_view why);

}  // namespace elastic::progress::nvrx
