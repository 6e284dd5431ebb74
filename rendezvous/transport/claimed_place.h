#pragma once

#include "rendezvous/locate/claimant.h"
#include "rendezvous/transport/claim_file.h"
#include "rendezvous/transport/meeting_place.h"
#include "src/net/names.h"

namespace elastic::transport {

// Finds the coordinator by a claim in a file: carries out what locate::Claimant decides.
class ClaimedPlace : public MeetingPlace {
 public:
  ClaimedPlace(net::Loop& loop, const MeetingSettings& settings, ToStore to_store, OnHosting on_hosting);

  void find(bool belongs, OnFound on_found) override;
  void stop() override;
  void tried(locate::Tried how) override { claimant_.tried(how); }
  bool may_be_stale() const override { return true; }
  void withdraw(std::function<void()> done) override;
  bool hangs() const override { return claims_.hangs() || renewals_.hangs(); }

 private:
  using Claimant = locate::Claimant;

  void perform(Claimant::Effects effects);
  void perform(const Claimant::Read&);
  void perform(const Claimant::Write& effect);
  void perform(const Claimant::Renew& effect);
  void perform(const Claimant::TakeBack& effect);
  void perform(const Claimant::RenewAt& effect);
  void perform(const Claimant::StopRenewing&);
  void perform(const Claimant::Open& effect);
  void perform(const Claimant::ActUntil& effect) { server()->set_authority(effect.authority); }
  void perform(const Claimant::Hosts& effect) { tell_hosting("hosts", effect.where, effect.reason); }
  void perform(const Claimant::Close&) { close_server(); }
  void perform(const Claimant::Depose& effect) { retire_server(effect.why); }
  void perform(const Claimant::Found& effect);
  void perform(const Claimant::NotFound& effect);
  void perform(const Claimant::Withdrawn&);
  void perform(const Claimant::Tell& effect);
  void found(Way way);

  // The same claim twice, so that reads and renewals do not wait for each other.
  ClaimFile claims_;
  ClaimFile renewals_;
  net::Resolver resolver_;
  net::Timer renewal_;
  Claimant claimant_;
  OnFound on_found_;
  std::function<void()> on_withdrawn_;
  std::uint64_t attempt_ = 0;
};

}  // namespace elastic::transport
