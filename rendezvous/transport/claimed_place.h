#pragma once

#include <optional>

#include "rendezvous/locate/tenure.h"
#include "rendezvous/transport/claim_register.h"
#include "rendezvous/transport/meeting_place.h"
#include "src/net/names.h"

namespace elastic::transport {

// The coordinator is where a claim says it is; carries out what locate::decide_claim decides. The claim is read anew
// for each attempt, also where the coordinator is in this process: another node may have taken it over meanwhile. Where
// it is ours, it is renewed as locate::Tenure says, and the coordinator acts as long as that gives it the right to.
class ClaimedPlace : public MeetingPlace {
 public:
  // `claims` and `renewals` are the same place, and are asked side by side.
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

  // Looking.
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
  // The claim is not ours: nobody has been told of the coordinator that we may have opened for it.
  void close_if_unclaimed();

  // Holding.
  bool holds() const { return tenure_.has_value(); }
  void hold(locate::Tenure tenure, const std::string& where, const std::string& reason);
  void plan_renewal();
  void renew();
  void renewed(const Answer& answer, std::int64_t began_ms);
  void tell_not_renewed(const std::string& reason);
  // It is the coordinator's place no more; why, as a clause.
  void lose(const std::string& why);
  void take_back(const std::string& expected, bool once_more, std::function<void()> done);

  locate::ClaimTimes times() const { return {{settings_.loss_timeout_ms}}; }

  std::unique_ptr<ClaimRegister> claims_;
  std::unique_ptr<ClaimRegister> renewals_;
  net::Resolver resolver_;
  net::Timer renewal_;
  const std::string agent_;               // of our claims
  std::uint64_t written_ = 0;             // claims of ours that may have been written: each has a number of its own
  std::optional<locate::Claim> own_;      // names server(); it may stand there, or have been about to
  std::optional<locate::Tenure> tenure_;  // it has stood there
  bool told_not_renewed_ = false;
  std::optional<locate::Claim> going_;    // the claim of the last way
  std::optional<locate::Claim> reached_;  // the last that was answered at
  locate::ClaimTrials trials_;
  locate::ClaimSight sight_;
  bool belongs_ = false;
  OnFound on_found_;
  std::uint64_t attempt_ = 0;
};

}  // namespace elastic::transport
