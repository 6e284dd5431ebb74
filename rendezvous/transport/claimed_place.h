#pragma once

#include <optional>

#include "rendezvous/locate/tenure.h"
#include "rendezvous/transport/claim_register.h"
#include "rendezvous/transport/meeting_place.h"
#include "src/net/names.h"

namespace elastic::transport {

// Finds the coordinator by a claim, as locate::decide_claim decides. The claim is read again for each attempt, even if
// the coordinator is in this process: another node may have taken it over. This node's own claim is renewed as
// locate::Tenure says, and the coordinator acts as long as its authority holds.
class ClaimedPlace : public MeetingPlace {
 public:
  // `claims` and `renewals` are two registers of the same claim, so that reads and renewals do not wait for each other.
  ClaimedPlace(net::Loop& loop, const MeetingSettings& settings, std::unique_ptr<ClaimRegister> claims,
               std::unique_ptr<ClaimRegister> renewals, ToStore to_store, OnHosting on_hosting);

  void find(bool belongs, OnFound on_found) override;
  void stop() override;
  void tried(locate::Tried how) override;
  bool may_be_stale() const override { return true; }
  void withdraw(std::function<void()> done) override;
  bool hangs() const override { return claims_->hangs() || renewals_->hangs(); }

 private:
  using Answer = std::expected<std::string, ClaimRegister::Failure>;

  // Finding the coordinator.
  void read(const Answer& answer);
  void judge(const std::string& text);
  void claim(const std::string& expected, const std::string& reason);
  void claimed(const Answer& answer, const locate::Claim& wanted, const std::string& reason, std::int64_t began_ms);
  void go_to(const locate::Claim& claim);
  void found(Way way);
  void found_problem(std::string problem, bool hopeless = false) {
    found({.problem = std::move(problem), .hopeless = hopeless});
  }
  bool is_own(const locate::Claim& claim) const { return own_ && locate::same_holder(*own_, claim); }
  // Closes a coordinator that was opened for a claim which was not written: no node knows of it.
  void close_if_unclaimed();

  // Holding the claim.
  bool holds() const { return tenure_.has_value(); }
  void hold(locate::Tenure tenure, const std::string& where, const std::string& reason);
  void plan_renewal();
  void renew();
  void renewed(const Answer& answer, std::int64_t began_ms);
  void tell_not_renewed(const std::string& reason);
  // This node does not hold the claim any more. `why` is a clause.
  void lose(const std::string& why);
  void take_back(const std::string& expected, bool once_more, std::function<void()> done);

  locate::ClaimTimes times() const { return {{settings_.loss_timeout_ms}}; }

  std::unique_ptr<ClaimRegister> claims_;
  std::unique_ptr<ClaimRegister> renewals_;
  net::Resolver resolver_;
  net::Timer renewal_;
  const std::string agent_;               // the random name in this node's claims
  std::uint64_t written_ = 0;             // the number of the next claim: each has one of its own
  std::optional<locate::Claim> own_;      // names server(); it was written, or its write was not answered
  std::optional<locate::Tenure> tenure_;  // set while this node holds the claim
  bool told_not_renewed_ = false;
  std::optional<locate::Claim> going_;    // the claim that was found last
  std::optional<locate::Claim> reached_;  // the last claim whose coordinator answered
  locate::ClaimTrials trials_;
  locate::ClaimSight sight_;
  bool belongs_ = false;
  OnFound on_found_;
  std::uint64_t attempt_ = 0;
};

}  // namespace elastic::transport
