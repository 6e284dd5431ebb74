#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rendezvous/locate/claimant.h"

namespace elastic::transport {

// How long it may take to resolve the name of the register's host, or that in a claim.
inline constexpr std::int64_t kClaimResolveMs = 2'000;

// The place of one job's claim (locate::claim_text), which is changed by compare-and-set only. One call at a time.
class ClaimRegister {
 public:
  using Failure = locate::RegisterFailure;
  // Gets the text of the present claim; empty if there is none.
  using Done = std::function<void(locate::RegisterAnswer)>;

  virtual ~ClaimRegister() = default;

  // read() and compare_set() call `done` once, in a later turn of the loop, within some seconds.
  virtual void read(Done done) = 0;
  // Replaces `expected` by `desired` if `expected` is the present text. An empty text means that there is no claim.
  virtual void compare_set(std::string expected, std::string desired, Done done) = 0;
  // Cancels the callback of the present call, though the call may still take effect, and closes connections.
  virtual void forget() = 0;
  // This host's address on the connection of the last answer; empty: not known.
  virtual std::string own_address() const { return {}; }
  // Whether the user has named this host as that of the register, so that a loopback address may be claimed.
  virtual bool loopback_is_meant() const { return false; }
  // See MeetingPlace.
  virtual bool hangs() const { return false; }
  // "file /shared/meeting".
  virtual std::string name() const = 0;
};

}  // namespace elastic::transport
