#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/locate/authority.h"
#include "rendezvous/locate/claim.h"
#include "rendezvous/protocol/lease.h"

namespace elastic::locate {

// How long a claim is good for, in milliseconds. With its holder's count and the taker's, each by a clock of its own
// that may be off by 1 %, nobody acts before the other has ended, and its workers are gone.
struct ClaimTimes {
  protocol::LeaseTimes lease;

  std::int64_t renewal_ms() const { return lease.renewal_ms(); }
  // Its holder may act so long, counted from when it began to write the text that stands there.
  std::int64_t held_ms() const { return lease.lease_ms() - lease.lease_ms() / 100; }
  // Another may write its own in its place when it has seen the same text for so long.
  std::int64_t taken_after_ms() const { return lease.over_ms(); }
};

// The holder's side of a claim: when it renews it, and until when it may act. Times in milliseconds of a clock that
// goes on while the machine is suspended.
//
// What was written within kLongestWriteMs counts from its beginning. What took longer, and a text of our own that we
// find without having been told that it was written, may have come late, when its lock was broken, over another's
// claim, who learns of it when it renews its own: unless our time still runs we act no sooner than that one's is over.
class Tenure {
 public:
  // Locks of a file of claims are good for twice as long.
  static constexpr std::int64_t kLongestWriteMs = 2'500;

  explicit Tenure(ClaimTimes times) : times_(times) {}

  // Our claim has been written; that began at `began_ms`.
  void begin(const Claim& claim, std::int64_t began_ms, std::int64_t now_ms);
  // Our claim stands there, though we were told nothing of it.
  void find(const Claim& claim, std::int64_t now_ms);

  // What is to be written now, and in place of what; none: of nothing. Another text each time, so that one that we
  // find is known to be of an earlier attempt.
  Claim next() const;
  const std::optional<Claim>& standing() const { return standing_; }
  std::int64_t due_ms() const { return due_ms_; }

  enum class Fate : std::uint8_t {
    kHeld,   // renewed
    kAgain,  // to be tried again at once: what stands there is ours, or nobody's while our time runs
    kTaken,  // another's claim stands there
    kGone,   // nobody's does, and our time was over: another may have had it since, and ended the job in order
  };
  // An attempt to write next(), which began at `began_ms`, has been answered: this stands there now.
  Fate answered(const std::optional<Claim>& there, std::int64_t began_ms, std::int64_t now_ms);
  // It has not.
  void unanswered(std::int64_t began_ms);

  Authority authority() const { return authority_; }

 private:
  void doubt(std::int64_t now_ms);

  ClaimTimes times_;
  Claim holder_;                   // with the number of the last attempt
  std::optional<Claim> standing_;  // as far as we know
  std::int64_t due_ms_ = 0;
  std::optional<std::int64_t> not_before_ms_;  // of acting, while another may
  Authority authority_ = Authority::none();
};

}  // namespace elastic::locate
