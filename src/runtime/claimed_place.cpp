#include "src/runtime/claimed_place.h"

#include <utility>

#include "src/base/address.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/runtime/local_host.h"

namespace elastic::runtime {
namespace {

using locate::Claim;
using locate::ClaimStep;
using locate::Tried;

}  // namespace

ClaimedPlace::ClaimedPlace(net::Loop& loop, const LaunchSettings& settings, std::unique_ptr<ClaimRegister> claims,
                           ToStore to_store, OnHosting on_hosting)
    : MeetingPlace(loop, settings, std::move(to_store), std::move(on_hosting)),
      claims_(std::move(claims)),
      resolver_(loop),
      agent_(format("{:016x}", random_number())) {}

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

void ClaimedPlace::tried(Tried how, std::int64_t began_ms) {
  if (!going_) return;
  trials_.tried(*going_, how, began_ms);
  if (how == Tried::kAnswered) reached_ = going_;
}

void ClaimedPlace::read(const Answer& answer) {
  if (answer) return judge(*answer);
  // The coordinator needs no place where all know where it is.
  if (hosts_ || (belongs_ && reached_)) return go_to(hosts_ ? *own_ : *reached_);
  found_problem(answer.error().reason, answer.error().hopeless);
}

void ClaimedPlace::judge(const std::string& text) {
  locate::ClaimView view{.may_host = settings_.meeting.is_host != false,
                         .belongs = belongs_,
                         .hosts = hosts_,
                         .loss_timeout_ms = settings_.meeting.loss_timeout_ms};
  if (!text.empty()) {
    auto there = locate::read_claim(text);
    if (!there) return found_problem(there.error().reason, true);
    view.is_own = own_ == *there;
    view.tried = trials_.last(*there);
    view.silent_ms = trials_.silent_ms(*there, loop_.now_ms());
    view.there = std::move(*there);
  }
  const locate::ClaimDecision decision = locate::decide_claim(view);
  switch (decision.step) {
    case ClaimStep::kConnect:
      if (!view.is_own) close_if_unclaimed();
      // Written by an attempt of ours that was given up before its answer came.
      if (view.is_own && !std::exchange(hosts_, true)) {
        tell_hosting("hosts", locate::claim_endpoint(*own_), format("{} has its claim", claims_->name()));
      }
      return go_to(*view.there);
    case ClaimStep::kClaim: return claim(text, decision.reason);
    case ClaimStep::kWait: return found_problem(decision.reason);
  }
}

void ClaimedPlace::claim(const std::string& expected, const std::string& reason) {
  if (server() == nullptr) {
    if (const Status opened = open_server(settings_.meeting.coordinator_port); !opened) {
      return found_problem(opened.error().text());
    }
  }
  own_ = Claim{locate::claim_address(settings_.node.address, claims_->own_address(), claims_->loopback_is_meant(),
                                     own_addresses()),
               server()->port(), agent_};
  log::debug("claiming", format("claiming {} for {}: {}", claims_->name(), locate::claim_endpoint(*own_), reason),
             {{"port", own_->port}});
  claims_->compare_set(expected, locate::claim_text(*own_),
                       [this, reason](const Answer& answer) { claimed(answer, reason); });
}

void ClaimedPlace::claimed(const Answer& answer, const std::string& reason) {
  // It may have been written nevertheless, so that the coordinator stays open until the next look.
  if (!answer) return found_problem(answer.error().reason, answer.error().hopeless);
  const auto there = locate::read_claim(*answer);
  if (!there) {
    close_if_unclaimed();
    return found_problem(answer->empty() ? "another node's claim has just been taken back" : there.error().reason);
  }
  if (own_ == *there) {
    if (!std::exchange(hosts_, true)) {
      tell_hosting("hosts", format("{}, in {}", locate::claim_endpoint(*own_), claims_->name()), reason);
    }
  } else {
    log::debug("claiming", format("{} was first, at {}", there->agent, locate::claim_endpoint(*there)));
    close_if_unclaimed();
  }
  go_to(*there);
}

void ClaimedPlace::close_if_unclaimed() {
  if (hosts_) return;
  own_.reset();
  close_server();
}

void ClaimedPlace::go_to(const Claim& claim) {
  going_ = claim;
  if (own_ == claim) return found({.addresses = {kLoopback}, .ports = {claim.port}, .home = true});
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

void ClaimedPlace::withdraw(std::function<void()> done) {
  if (!hosts_) return done();
  stop();
  claims_->compare_set(locate::claim_text(*own_), "", [this, done = std::move(done)](const Answer& answer) {
    if (!answer) {
      log::info("claim_stays", format("{} keeps the claim of this node: {}; the next job takes it over",
                                      claims_->name(), answer.error().reason));
    }
    done();
  });
}

}  // namespace elastic::runtime
