#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>

namespace elastic::transport {

// How long the name of the register's host, or of one that is claimed, may take to be resolved.
inline constexpr std::int64_t kClaimResolveMs = 2'000;

// Where the claim of one job stands (locate::claim_text), changed by compare-and-set only. One call at a time.
class ClaimRegister {
 public:
  struct Failure {
    std::string reason;     // as a clause
    bool hopeless = false;  // time won't mend it
  };
  // The text that stands there now; empty: none.
  using Done = std::function<void(std::expected<std::string, Failure>)>;

  virtual ~ClaimRegister() = default;

  // Both are answered once, in a later turn of the loop, within some seconds.
  virtual void read(Done done) = 0;
  // Writes `desired` (empty: nothing) in the place of `expected`, if that is what stands there.
  virtual void compare_set(std::string expected, std::string desired, Done done) = 0;
  // Nothing comes of what was asked, though it may be carried out; and nothing is kept open.
  virtual void forget() = 0;
  // This host's address on the way there, since the last answer; empty: not known.
  virtual std::string own_address() const { return {}; }
  // Whether the place is said to be on this host, so that loopback will do.
  virtual bool loopback_is_meant() const { return false; }
  // See MeetingPlace.
  virtual bool hangs() const { return false; }
  // "file /shared/meeting".
  virtual std::string name() const = 0;
};

}  // namespace elastic::transport
