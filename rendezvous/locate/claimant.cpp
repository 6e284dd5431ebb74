#include "rendezvous/locate/claimant.h"

#include <algorithm>
#include <utility>

#include "rendezvous/protocol/term.h"
#include "src/base/text.h"

namespace elastic::locate {

namespace {

// The shortest pause before a renewal is tried again.
constexpr std::int64_t kAgainMs = 20;

using Level = Claimant::Tell::Level;

// The claim of an answer; nothing if there is none, an error if its text is no claim.
Result<std::optional<Claim>> claim_in(const std::string& text) {
  if (text.empty()) return std::optional<Claim>();
  auto claim = read_claim(text);
  if (!claim) return std::unexpected(std::move(claim.error()));
  return std::optional(std::move(*claim));
}

}  // namespace

// --- Finding the coordinator. ----------------------------------------------------------------------------

Claimant::Effects Claimant::find(bool belongs) {
  belongs_ = belongs;
  return {Read{}};
}

void Claimant::tried(Tried how) {
  if (!going_) return;
  trials_.tried(*going_, how);
  if (how == Tried::kAnswered) reached_ = going_;
}

Claimant::Effects Claimant::read(const RegisterAnswer& answer, std::int64_t now_ms) {
  Effects out;
  if (!answer) {
    // Without the register, nodes of a job that has a coordinator go on with the one that they know.
    if (holds() || (belongs_ && reached_)) {
      go_to(holds() ? *own_ : *reached_, out);
      return out;
    }
    return {NotFound{answer.error()}};
  }
  auto there = claim_in(*answer);
  if (!there) return {NotFound{{there.error().reason, true}}};
  if (*there && !is_own(**there) && holds()) {
    lose(format("{} has taken over its claim", claim_endpoint(**there)), out);
  }
  ClaimView view{.may_host = settings_.may_host, .belongs = belongs_, .hosts = holds()};
  if (*there) {
    view.is_own = is_own(**there);
    view.tried = trials_.last(**there);
    view.unchanged_ms = sight_.seen(**there, now_ms);
    view.there = std::move(*there);
  }
  ClaimDecision decision = decide_claim(view);
  switch (decision.step) {
    case ClaimStep::kConnect:
      if (!view.is_own) close_if_unclaimed(out);
      if (view.is_own && !holds()) {
        // An earlier attempt of this node has written it, and was given up before its answer came.
        Tenure tenure(times());
        tenure.find(*view.there, now_ms);
        hold(std::move(tenure), claim_endpoint(*own_), format("{} has its claim", settings_.place), now_ms, out);
      }
      go_to(*view.there, out);
      break;
    case ClaimStep::kClaim:
      if (holds()) {
        // The next renewal writes the claim again.
        go_to(*own_, out);
        break;
      }
      expected_ = *answer;
      reason_ = std::move(decision.reason);
      // A coordinator that is open since an earlier attempt has begun with another term.
      if (own_ && term_ != term_after(view.there)) close_if_unclaimed(out);
      term_ = term_after(view.there);
      out.emplace_back(Open{term_});
      break;
    case ClaimStep::kWait: out.emplace_back(NotFound{{std::move(decision.reason)}}); break;
  }
  return out;
}

protocol::Term Claimant::term_after(const std::optional<Claim>& there) const {
  return there ? protocol::term_after(there->term, settings_.random) : 1;
}

Claimant::Effects Claimant::opened(const std::string& address, std::uint16_t port, std::int64_t now_ms) {
  own_ = Claim{address, port, settings_.agent, written_++, settings_.loss_timeout_ms, term_};
  write_began_ms_ = now_ms;
  return {Tell{Level::kDebug, "claiming",
               format("claiming {} for {}: {}", settings_.place, claim_endpoint(*own_), reason_), port},
          Write{expected_, claim_text(*own_)}};
}

Claimant::Effects Claimant::not_opened(const std::string& problem) { return {NotFound{{problem}}}; }

Claimant::Effects Claimant::written(const RegisterAnswer& answer, std::int64_t now_ms) {
  // The claim may have been written nevertheless, so the coordinator stays open until the claim is read again.
  if (!answer) return {NotFound{answer.error()}};
  Effects out;
  const auto there = read_claim(*answer);
  if (!there) {
    close_if_unclaimed(out);
    out.emplace_back(NotFound{{answer->empty() ? "another node has just removed its claim" : there.error().reason}});
    return out;
  }
  if (is_own(*there)) {
    Tenure tenure(times());
    if (*there == *own_) {
      tenure.begin(*there, write_began_ms_, now_ms);
    } else {
      tenure.find(*there, now_ms);
    }
    hold(std::move(tenure), format("{}, in {}", claim_endpoint(*own_), settings_.place), reason_, now_ms, out);
  } else {
    out.emplace_back(
        Tell{Level::kDebug, "claiming", format("{} was first, at {}", there->agent, claim_endpoint(*there))});
    close_if_unclaimed(out);
  }
  go_to(*there, out);
  return out;
}

void Claimant::close_if_unclaimed(Effects& out) {
  if (holds()) return;
  own_.reset();
  out.emplace_back(Close{});
}

void Claimant::go_to(const Claim& claim, Effects& out) {
  going_ = claim;
  out.emplace_back(Found{claim, is_own(claim)});
}

// --- Holding the claim. ----------------------------------------------------------------------------------

void Claimant::hold(Tenure tenure, const std::string& where, const std::string& reason, std::int64_t now_ms,
                    Effects& out) {
  tenure_ = std::move(tenure);
  written_ = tenure_->next().renewals;
  out.emplace_back(ActUntil{tenure_->authority()});
  out.emplace_back(Hosts{where, reason});
  plan_renewal(now_ms, out);
}

void Claimant::plan_renewal(std::int64_t now_ms, Effects& out) const {
  out.emplace_back(RenewAt{std::max(tenure_->due_ms(), now_ms + kAgainMs)});
}

Claimant::Effects Claimant::renewal_is_due(std::int64_t now_ms) {
  const auto& standing = tenure_->standing();
  const Claim next = tenure_->next();
  written_ = next.renewals + 1;
  renewal_began_ms_ = now_ms;
  return {Renew{standing ? claim_text(*standing) : "", claim_text(next)}};
}

Claimant::Effects Claimant::renewed(const RegisterAnswer& answer, std::int64_t now_ms) {
  Effects out;
  const auto there = answer ? claim_in(*answer) : Result<std::optional<Claim>>();
  if (!answer || !there) {
    tenure_->unanswered(renewal_began_ms_);
    tell_not_renewed(answer ? there.error().reason : answer.error().reason, now_ms, out);
    plan_renewal(now_ms, out);
    return out;
  }
  const Tenure::Fate fate = tenure_->answered(*there, renewal_began_ms_, now_ms);
  if (fate == Tenure::Fate::kTaken) {
    lose(format("{} has taken over its claim", claim_endpoint(**there)), out);
    return out;
  }
  if (fate == Tenure::Fate::kGone) {
    lose("its claim was not renewed in time, and is gone", out);
    return out;
  }
  if (fate == Tenure::Fate::kHeld && std::exchange(told_not_renewed_, false)) {
    out.emplace_back(Tell{Level::kInfo, "claim_renewed",
                          format("{} accepts the renewals of this node's claim again", settings_.place)});
  }
  out.emplace_back(ActUntil{tenure_->authority()});
  plan_renewal(now_ms, out);
  return out;
}

void Claimant::tell_not_renewed(const std::string& reason, std::int64_t now_ms, Effects& out) {
  if (std::exchange(told_not_renewed_, true)) return;
  const std::int64_t ends_ms = tenure_->authority().ends_ms().value_or(0);
  out.emplace_back(
      Tell{Level::kWarning, "claim_not_renewed",
           format("{} does not accept the renewal of this node's claim: {}; workers are stopped on all nodes unless "
                  "it does within {} ms. If it may be slow for so long, set a longer loss_timeout in "
                  "--rdzv-conf",
                  settings_.place, reason, std::max<std::int64_t>(ends_ms - now_ms, 0))});
}

void Claimant::lose(const std::string& why, Effects& out) {
  out.emplace_back(Tell{Level::kWarning, "claim_lost",
                        format("this node does not host the coordinator any more: {}, in {}", why, settings_.place)});
  out.emplace_back(StopRenewing{});
  tenure_.reset();
  own_.reset();
  told_not_renewed_ = false;
  out.emplace_back(Depose{why});
}

Claimant::Effects Claimant::withdraw() {
  if (!holds()) return {Withdrawn{}};
  // As soon as the claim is removed another node may claim the place, and begin a job of this name.
  Effects out{StopRenewing{}, ActUntil{Authority::none()}};
  const auto& standing = tenure_->standing();
  takes_back_again_ = true;
  if (standing) {
    out.emplace_back(TakeBack{claim_text(*standing)});
  } else {
    out.emplace_back(Withdrawn{});
  }
  return out;
}

// A renewal that was under way may have replaced the expected text. Then the removal is tried once more.
Claimant::Effects Claimant::taken_back(const RegisterAnswer& answer) {
  const auto there = answer ? claim_in(*answer) : Result<std::optional<Claim>>();
  const bool is_there = there && *there && is_own(**there);
  if (std::exchange(takes_back_again_, false) && is_there) return {TakeBack{*answer}};
  Effects out;
  if (!answer) {
    out.emplace_back(Tell{Level::kInfo, "claim_stays",
                          format("the claim of this node stays in {}: {}; the next job takes it over", settings_.place,
                                 answer.error().reason)});
  }
  out.emplace_back(Withdrawn{});
  return out;
}

}  // namespace elastic::locate
