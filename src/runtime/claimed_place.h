#pragma once

#include <optional>

#include "src/net/names.h"
#include "src/runtime/claim_register.h"
#include "src/runtime/meeting_place.h"

namespace elastic::runtime {

// The coordinator is where a claim says it is; carries out what locate::decide_claim decides. The claim is read anew
// for each attempt, also where the coordinator is in this process: another node may have taken it over meanwhile.
class ClaimedPlace : public MeetingPlace {
 public:
  ClaimedPlace(net::Loop& loop, const LaunchSettings& settings, std::unique_ptr<ClaimRegister> claims,
               ToStore to_store, OnHosting on_hosting);

  void find(bool belongs, OnFound on_found) override;
  void stop() override;
  void tried(locate::Tried how, std::int64_t began_ms) override;
  bool may_be_stale() const override { return true; }
  void withdraw(std::function<void()> done) override;
  bool hangs() const override { return claims_->hangs(); }

 private:
  using Answer = std::expected<std::string, ClaimRegister::Failure>;

  void read(const Answer& answer);
  void judge(const std::string& text);
  void claim(const std::string& expected, const std::string& reason);
  void claimed(const Answer& answer, const std::string& reason);
  void go_to(const locate::Claim& claim);
  void found(Way way);
  void found_problem(std::string problem, bool hopeless = false) {
    found({.problem = std::move(problem), .hopeless = hopeless});
  }
  // The claim is not ours: nobody has been told of the coordinator that we may have opened for it.
  void close_if_unclaimed();

  std::unique_ptr<ClaimRegister> claims_;
  net::Resolver resolver_;
  const std::string agent_;              // of our claims
  std::optional<locate::Claim> own_;     // names server(); it may stand there, or have been about to
  bool hosts_ = false;                   // it has stood there
  std::optional<locate::Claim> going_;   // the claim of the last way
  std::optional<locate::Claim> reached_; // the last that was answered at
  locate::ClaimTrials trials_;
  bool belongs_ = false;
  OnFound on_found_;
  std::uint64_t attempt_ = 0;
};

}  // namespace elastic::runtime
