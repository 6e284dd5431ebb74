#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rendezvous/transport/meeting_place.h"
#include "src/net/names.h"

namespace elastic::transport {

// The coordinator is where the endpoint leads: who may host it is decided anew with each attempt until somebody does,
// since a name may not be known yet, and who binds the endpoint first hosts. An endpoint of several ports is hosted at
// the first that is free, and looked for at all of them.
class EndpointPlace : public MeetingPlace {
 public:
  EndpointPlace(net::Loop& loop, const MeetingSettings& settings, ToStore to_store, OnHosting on_hosting);

  void find(bool belongs, OnFound on_found) override;
  void stop() override { ++attempt_; }
  void reached(std::uint16_t port) override { reached_ = port; }

 private:
  Way way(Result<std::vector<std::string>> resolved);
  void host_if_ours(const Way& way);
  bool open_one();
  std::vector<std::uint16_t> ports_from(std::uint16_t first) const;
  std::uint16_t port_after(std::uint16_t port) const;

  net::Resolver resolver_;
  std::uint64_t attempt_ = 0;
  bool is_sure_ = false;  // that the endpoint leads to server()
  bool told_why_not_ = false;
  bool told_no_port_ = false;
  // Who answers at a port of several may be another job's. The look-up that follows begins at the next one, unless
  // this node's coordinator was there.
  std::uint16_t first_port_ = 0;  // none of them: the endpoint's
  std::optional<std::uint16_t> reached_;
};

}  // namespace elastic::transport
