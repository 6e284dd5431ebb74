#include "rendezvous/transport/claimed_place.h"

#include <algorithm>
#include <utility>

#include "src/base/address.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/local_host.h"
#include "src/process/clock.h"
#include "src/process/random.h"

namespace elastic::transport {
namespace {

using locate::Claim;
using locate::ClaimStep;
using locate::Tenure;
using locate::Tried;

// The shortest pause before a renewal is tried again.
constexpr std::int64_t kAgainMs = 20;

}  // namespace

ClaimedPlace::ClaimedPlace(net::Loop& loop, const MeetingSettings& settings, std::unique_ptr<ClaimRegister> claims,
                           std::unique_ptr<ClaimRegister> renewals, ToStore to_store, OnHosting on_hosting)
    : MeetingPlace(loop, settings, std::move(to_store), std::move(on_hosting)),
      claims_(std::move(claims)),
      renewals_(std::move(renewals)),
      resolver_(loop),
      renewal_(loop),
      agent_(format("{:016x}", process::random_number())) {}

// --- Finding the coordinator. ----------------------------------------------------------------------------

void ClaimedPlace::find(bool belongs, OnFound on_found) {
  stop();
  belongs_ = belongs;
  on_found_ = std::move(on_found);
  claims_->read([this](const Answer& answer) { read(answer); });
}

void ClaimedPlace::stop() {
  ++attempt_;
  on_found_ = nullptr;
  claims_->forget();
}

void ClaimedPlace::tried(Tried how) {
  if (!going_) return;
  trials_.tried(*going_, how);
  if (how == Tried::kAnswered) reached_ = going_;
}

void ClaimedPlace::read(const Answer& answer) {
  if (answer) return judge(*answer);
  // Without the register, nodes of a job that has a coordinator go on with the one that they know.
  if (holds() || (belongs_ && reached_)) return go_to(holds() ? *own_ : *reached_);
  found_problem(answer.error().reason, answer.error().hopeless);
}

void ClaimedPlace::judge(const std::string& text) {
  locate::ClaimView view{.may_host = settings_.is_host != false,
                         .belongs = belongs_,
                         .hosts = holds(),
                         .loss_timeout_ms = settings_.loss_timeout_ms};
  if (!text.empty()) {
    auto there = locate::read_claim(text);
    if (!there) return found_problem(there.error().reason, true);
    view.is_own = is_own(*there);
    if (!view.is_own && holds()) {
      lose(format("{} has taken over its claim", locate::claim_endpoint(*there)));
      view.hosts = false;
    }
    view.tried = trials_.last(*there);
    view.unchanged_ms = sight_.seen(*there, process::boottime_ms());
    view.there = std::move(*there);
  }
  const locate::ClaimDecision decision = locate::decide_claim(view);
  switch (decision.step) {
    case ClaimStep::kConnect:
      if (!view.is_own) close_if_unclaimed();
      if (view.is_own && !holds()) {
        // An earlier attempt of this node has written it, and was given up before its answer came.
        Tenure tenure(times());
        tenure.find(*view.there, process::boottime_ms());
        hold(std::move(tenure), locate::claim_endpoint(*own_), format("{} has its claim", claims_->name()));
      }
      return go_to(*view.there);
    case ClaimStep::kClaim:
      // The next renewal writes the claim again.
      if (holds()) return go_to(*own_);
      return claim(text, decision.reason);
    case ClaimStep::kWait: return found_problem(decision.reason);
  }
}

void ClaimedPlace::claim(const std::string& expected, const std::string& reason) {
  if (server() == nullptr) {
    if (const Status opened = open_server(settings_.coordinator_port); !opened) {
      return found_problem(opened.error().text());
    }
  }
  own_ = Claim{locate::claim_address(settings_.node_address, claims_->own_address(), claims_->loopback_is_meant(),
                                     net::own_addresses()),
               server()->port(), agent_, written_++, settings_.loss_timeout_ms};
  log::debug("claiming", format("claiming {} for {}: {}", claims_->name(), locate::claim_endpoint(*own_), reason),
             {{"port", own_->port}});
  claims_->compare_set(expected, locate::claim_text(*own_),
                       [this, wanted = *own_, reason, began_ms = process::boottime_ms()](const Answer& answer) {
                         claimed(answer, wanted, reason, began_ms);
                       });
}

void ClaimedPlace::claimed(const Answer& answer, const Claim& wanted, const std::string& reason,
                           std::int64_t began_ms) {
  // The claim may have been written nevertheless, so the coordinator stays open until the claim is read again.
  if (!answer) return found_problem(answer.error().reason, answer.error().hopeless);
  const auto there = locate::read_claim(*answer);
  if (!there) {
    close_if_unclaimed();
    return found_problem(answer->empty() ? "another node has just removed its claim" : there.error().reason);
  }
  if (is_own(*there)) {
    Tenure tenure(times());
    if (*there == wanted) {
      tenure.begin(*there, began_ms, process::boottime_ms());
    } else {
      tenure.find(*there, process::boottime_ms());
    }
    hold(std::move(tenure), format("{}, in {}", locate::claim_endpoint(*own_), claims_->name()), reason);
  } else {
    log::debug("claiming", format("{} was first, at {}", there->agent, locate::claim_endpoint(*there)));
    close_if_unclaimed();
  }
  go_to(*there);
}

void ClaimedPlace::close_if_unclaimed() {
  if (holds()) return;
  own_.reset();
  close_server();
}

void ClaimedPlace::go_to(const Claim& claim) {
  going_ = claim;
  if (is_own(claim)) return found({.addresses = {kLoopback}, .ports = {claim.port}, .home = true});
  resolver_.resolve(claim.address, kClaimResolveMs,
                    [this, attempt = attempt_, port = claim.port](Result<std::vector<std::string>> addresses) {
                      if (attempt != attempt_) return;
                      if (!addresses) return found_problem(addresses.error().reason);
                      found({.addresses = std::move(*addresses), .ports = {port}});
                    });
}

void ClaimedPlace::found(Way way) {
  claims_->forget();
  if (const OnFound call = std::exchange(on_found_, nullptr)) call(std::move(way));
}

// --- Holding the claim. ----------------------------------------------------------------------------------

void ClaimedPlace::hold(Tenure tenure, const std::string& where, const std::string& reason) {
  tenure_ = std::move(tenure);
  written_ = tenure_->next().renewals.value_or(0);
  server()->set_authority(tenure_->authority());
  tell_hosting("hosts", where, reason);
  plan_renewal();
}

void ClaimedPlace::plan_renewal() {
  renewal_.start(std::max(tenure_->due_ms() - process::boottime_ms(), kAgainMs), [this] { renew(); });
}

void ClaimedPlace::renew() {
  const auto& standing = tenure_->standing();
  const Claim next = tenure_->next();
  written_ = next.renewals.value_or(0) + 1;
  renewals_->compare_set(
      standing ? locate::claim_text(*standing) : "", locate::claim_text(next),
      [this, began_ms = process::boottime_ms()](const Answer& answer) { renewed(answer, began_ms); });
}

void ClaimedPlace::renewed(const Answer& answer, std::int64_t began_ms) {
  const auto there = answer && !answer->empty() ? locate::read_claim(*answer) : Result<Claim>(Claim{});
  if (!answer || !there) {
    tenure_->unanswered(began_ms);
    tell_not_renewed(answer ? there.error().reason : answer.error().reason);
    return plan_renewal();
  }
  const std::optional<Claim> stands = answer->empty() ? std::nullopt : std::optional(*there);
  const Tenure::Fate fate = tenure_->answered(stands, began_ms, process::boottime_ms());
  if (fate == Tenure::Fate::kTaken) return lose(format("{} has taken over its claim", locate::claim_endpoint(*stands)));
  if (fate == Tenure::Fate::kGone) return lose("its claim was not renewed in time, and is gone");
  if (fate == Tenure::Fate::kHeld && std::exchange(told_not_renewed_, false)) {
    log::info("claim_renewed", format("{} accepts the renewals of this node's claim again", claims_->name()));
  }
  server()->set_authority(tenure_->authority());
  plan_renewal();
}

void ClaimedPlace::tell_not_renewed(const std::string& reason) {
  if (std::exchange(told_not_renewed_, true)) return;
  const auto ends_ms = tenure_->authority().ends_ms();
  log::warning(
      "claim_not_renewed",
      format("{} does not accept the renewal of this node's claim: {}; workers are stopped on all nodes unless "
             "it does within {} ms. If it may be slow for so long, set a longer loss_timeout in "
             "--rdzv-conf",
             claims_->name(), reason, std::max<std::int64_t>(ends_ms.value_or(0) - process::boottime_ms(), 0)));
}

void ClaimedPlace::lose(const std::string& why) {
  log::warning("claim_lost",
               format("this node does not host the coordinator any more: {}, in {}", why, claims_->name()));
  renewal_.stop();
  renewals_->forget();
  tenure_.reset();
  own_.reset();
  told_not_renewed_ = false;
  retire_server(why);
}

void ClaimedPlace::withdraw(std::function<void()> done) {
  if (!holds()) return done();
  stop();
  renewal_.stop();
  renewals_->forget();
  const auto& standing = tenure_->standing();
  if (!standing) return done();
  take_back(locate::claim_text(*standing), true, std::move(done));
}

// A renewal that was under way may have replaced the expected text. Then the removal is tried once more.
void ClaimedPlace::take_back(const std::string& expected, bool once_more, std::function<void()> done) {
  claims_->compare_set(expected, "", [this, once_more, done = std::move(done)](const Answer& answer) {
    const auto there = answer && !answer->empty() ? locate::read_claim(*answer) : Result<Claim>(Claim{});
    if (once_more && there && is_own(*there)) return take_back(*answer, false, done);
    if (!answer) {
      log::info("claim_stays", format("the claim of this node stays in {}: {}; the next job takes it over",
                                      claims_->name(), answer.error().reason));
    }
    done();
  });
}

}  // namespace elastic::transport
