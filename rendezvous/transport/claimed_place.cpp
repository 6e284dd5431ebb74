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

using locate::RegisterAnswer;
using process::boottime_ms;

namespace {

// How long it may take to resolve the name in a claim.
constexpr std::int64_t kClaimResolveMs = 2'000;

}  // namespace

ClaimedPlace::ClaimedPlace(net::Loop& loop, const MeetingSettings& settings, ToStore to_store, OnHosting on_hosting)
    : MeetingPlace(loop, settings, std::move(to_store), std::move(on_hosting)),
      claims_(loop, settings.path, settings.job),
      renewals_(loop, settings.path, settings.job),
      resolver_(loop),
      renewal_(loop),
      claimant_({.place = claims_.name(),
                 .agent = format("{:016x}", process::random_number()),
                 .random = static_cast<std::uint32_t>(process::random_number()),
                 .loss_timeout_ms = settings.loss_timeout_ms,
                 .may_host = settings.is_host != false}) {}

void ClaimedPlace::find(bool belongs, OnFound on_found) {
  stop();
  on_found_ = std::move(on_found);
  perform(claimant_.find(belongs));
}

void ClaimedPlace::stop() {
  ++attempt_;
  on_found_ = nullptr;
  claims_.forget();
}

void ClaimedPlace::withdraw(std::function<void()> done) {
  if (claimant_.holds()) stop();
  on_withdrawn_ = std::move(done);
  perform(claimant_.withdraw());
}

void ClaimedPlace::perform(Claimant::Effects effects) {
  for (const Claimant::Effect& effect : effects) {
    std::visit([this](const auto& wanted) { perform(wanted); }, effect);
  }
}

void ClaimedPlace::perform(const Claimant::Read&) {
  claims_.read([this](const RegisterAnswer& answer) { perform(claimant_.read(answer, boottime_ms())); });
}

void ClaimedPlace::perform(const Claimant::Write& effect) {
  claims_.compare_set(effect.expected, effect.desired,
                      [this](const RegisterAnswer& answer) { perform(claimant_.written(answer, boottime_ms())); });
}

void ClaimedPlace::perform(const Claimant::Renew& effect) {
  renewals_.compare_set(effect.expected, effect.desired,
                        [this](const RegisterAnswer& answer) { perform(claimant_.renewed(answer, boottime_ms())); });
}

void ClaimedPlace::perform(const Claimant::TakeBack& effect) {
  claims_.compare_set(effect.expected, "",
                      [this](const RegisterAnswer& answer) { perform(claimant_.taken_back(answer)); });
}

void ClaimedPlace::perform(const Claimant::RenewAt& effect) {
  renewal_.start(std::max<std::int64_t>(effect.at_ms - boottime_ms(), 0),
                 [this] { perform(claimant_.renewal_is_due(boottime_ms())); });
}

void ClaimedPlace::perform(const Claimant::StopRenewing&) {
  renewal_.stop();
  renewals_.forget();
}

void ClaimedPlace::perform(const Claimant::Open& effect) {
  if (server() == nullptr) {
    if (const Status opened = open_server(settings_.coordinator_port, effect.term); !opened) {
      return perform(claimant_.not_opened(opened.error().text()));
    }
  }
  const std::string address = locate::claim_address(settings_.node_address, net::own_addresses());
  perform(claimant_.opened(address, server()->port(), boottime_ms()));
}

void ClaimedPlace::perform(const Claimant::Found& effect) {
  const locate::Claim& claim = effect.claim;
  if (effect.is_own) return found({.addresses = {kLoopback}, .ports = {claim.port}, .home = true});
  resolver_.resolve(claim.address, kClaimResolveMs,
                    [this, attempt = attempt_, port = claim.port](Result<std::vector<std::string>> addresses) {
                      if (attempt != attempt_) return;
                      if (!addresses) return found({.problem = addresses.error().reason});
                      found({.addresses = std::move(*addresses), .ports = {port}});
                    });
}

void ClaimedPlace::perform(const Claimant::NotFound& effect) {
  found({.problem = effect.failure.reason, .hopeless = effect.failure.hopeless});
}

void ClaimedPlace::found(Way way) {
  claims_.forget();
  if (const OnFound call = std::exchange(on_found_, nullptr)) call(std::move(way));
}

void ClaimedPlace::perform(const Claimant::Withdrawn&) { std::exchange(on_withdrawn_, nullptr)(); }

void ClaimedPlace::perform(const Claimant::Tell& effect) {
  using Level = Claimant::Tell::Level;
  const log::Level level = effect.level == Level::kDebug  ? log::Level::kDebug
                           : effect.level == Level::kInfo ? log::Level::kInfo
                                                          : log::Level::kWarning;
  Json fields = Json::object();
  if (effect.port) fields.set("port", std::int64_t{*effect.port});
  log::tell(level, effect.event, effect.text, fields);
}

}  // namespace elastic::transport
