#include "rendezvous/locate/tenure.h"

namespace elastic::locate {

void Tenure::begin(const Claim& claim, std::int64_t began_ms, std::int64_t now_ms) {
  if (now_ms - began_ms > kLongestWriteMs) return find(claim, now_ms);
  holder_ = claim;
  standing_ = claim;
  not_before_ms_.reset();
  authority_ = Authority::until(began_ms + times_.held_ms());
  due_ms_ = began_ms + times_.renewal_ms();
}

void Tenure::find(const Claim& claim, std::int64_t now_ms) {
  holder_ = claim;
  standing_ = claim;
  due_ms_ = now_ms;
  wait_for_other_holder(now_ms);
}

Claim Tenure::next() const {
  Claim claim = holder_;
  claim.renewals = holder_.renewals + 1;
  return claim;
}

Tenure::Fate Tenure::answered(const std::optional<Claim>& there, std::int64_t began_ms, std::int64_t now_ms) {
  if (there && *there == next()) {
    holder_ = *there;
    standing_ = there;
    due_ms_ = began_ms + times_.renewal_ms();
    if (now_ms - began_ms > kLongestWriteMs) {
      wait_for_other_holder(now_ms);
      return Fate::kHeld;
    }
    if (not_before_ms_ && now_ms < *not_before_ms_) return Fate::kHeld;
    not_before_ms_.reset();
    authority_ = Authority::until(began_ms + times_.held_ms());
    return Fate::kHeld;
  }
  if (there && !same_holder(*there, holder_)) {
    authority_ = Authority::none();
    return Fate::kTaken;
  }
  if (!there && !authority_.holds(now_ms)) {
    authority_ = Authority::none();
    return Fate::kGone;
  }
  // The claim is of an attempt that was not answered; or somebody has removed it, which no elastic-run does meanwhile.
  holder_ = next();
  standing_ = there;
  due_ms_ = now_ms;
  wait_for_other_holder(now_ms);
  return Fate::kAgain;
}

void Tenure::unanswered(std::int64_t began_ms) {
  holder_ = next();
  due_ms_ = began_ms + times_.renewal_ms();
}

void Tenure::wait_for_other_holder(std::int64_t now_ms) {
  if (!authority_.holds(now_ms)) not_before_ms_ = now_ms + times_.taken_after_ms();
}

}  // namespace elastic::locate
