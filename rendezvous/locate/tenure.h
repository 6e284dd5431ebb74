#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/locate/authority.h"
#include "rendezvous/locate/claim.h"
#include "rendezvous/protocol/lease.h"

namespace elastic::locate {

// How long a claim is valid, in milliseconds. Its holder and the node that takes it over each measure by their own
// clock, which may be off by 1 %. The times are such that the new holder acts only when the old one has stopped acting
// and its workers are gone.
struct ClaimTimes {
  protocol::LeaseTimes lease;

  std::int64_t renewal_ms() const { return lease.renewal_ms(); }
  // How long its holder may act, counted from when it began to write the present text.
  std::int64_t held_ms() const { return lease.lease_ms() - lease.lease_ms() / 100; }
  // Another node may replace the claim when it has seen the same text for so long.
  std::int64_t taken_after_ms() const { return lease.over_ms(); }
};

// The holder's side of a claim: when it renews it, and until when it may act. Times are milliseconds of a clock that
// goes on while the machine is suspended.
//
// A write that took at most kLongestWriteMs counts from its beginning. A slower write, or one whose answer never came,
// may have replaced another node's claim after the lock of the file was broken; that node learns of it at its next
// renewal. Unless its authority still holds, this node therefore waits until that of the other node is over.
class Tenure {
 public:
  // The lock of a file of claims is valid twice as long.
  static constexpr std::int64_t kLongestWriteMs = 2'500;

  explicit Tenure(ClaimTimes times) : times_(times) {}

  // This node's claim has been written; the write began at `began_ms`.
  void begin(const Claim& claim, std::int64_t began_ms, std::int64_t now_ms);
  // This node's claim was read, though its write was never answered.
  void find(const Claim& claim, std::int64_t now_ms);

  // The claim to be written next. Its text is another one each time, so that each text belongs to one attempt.
  Claim next() const;
  // The claim that it is to replace, as far as this node knows; nothing if there is none.
  const std::optional<Claim>& standing() const { return standing_; }
  // When the next write is due.
  std::int64_t due_ms() const { return due_ms_; }

  enum class Fate : std::uint8_t {
    kHeld,   // the claim is renewed
    kAgain,  // to be tried again at once: the claim is another text of this node's, or is missing while this may act
    kTaken,  // another node's claim is there
    kGone,   // the claim is missing, and this node may not act: another may have held it since, and ended the job
  };
  // The write of next(), which began at `began_ms`, was answered: `there` is the present claim.
  Fate answered(const std::optional<Claim>& there, std::int64_t began_ms, std::int64_t now_ms);
  // The write of next(), which began at `began_ms`, was not answered.
  void unanswered(std::int64_t began_ms);

  Authority authority() const { return authority_; }

 private:
  // Unless the authority still holds, this node does not act until another holder's time is over.
  void wait_for_other_holder(std::int64_t now_ms);

  ClaimTimes times_;
  Claim holder_;                   // this node's claim, with the number of the last attempt
  std::optional<Claim> standing_;  // see standing()
  std::int64_t due_ms_ = 0;
  std::optional<std::int64_t> not_before_ms_;  // when this node may act at the earliest; nothing: as soon as it holds
  Authority authority_ = Authority::none();
};

}  // namespace elastic::locate
