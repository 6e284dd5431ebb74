#pragma once

#include "src/net/names.h"
#include "src/runtime/meeting_place.h"

namespace elastic::runtime {

// The coordinator is where the endpoint leads: who may host it is decided anew with each attempt until somebody does,
// since a name may not be known yet, and who binds the endpoint first hosts.
class EndpointPlace : public MeetingPlace {
 public:
  EndpointPlace(net::Loop& loop, const LaunchSettings& settings, ToStore to_store, OnHosting on_hosting);

  void find(bool belongs, OnFound on_found) override;
  void stop() override { ++attempt_; }

 private:
  Way way(Result<std::vector<std::string>> resolved);
  void host_if_ours(const Way& way);

  net::Resolver resolver_;
  std::uint64_t attempt_ = 0;
  bool is_sure_ = false;  // that the endpoint leads to server()
  bool told_why_not_ = false;
};

}  // namespace elastic::runtime
