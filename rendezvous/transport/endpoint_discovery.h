#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rendezvous/transport/discovery.h"
#include "rendezvous/transport/endpoint_list.h"
#include "rendezvous/transport/gossip_sender.h"
#include "src/net/names.h"

namespace elastic::transport {

// Finds the coordinator at the endpoint. Each attempt decides again whether this node hosts it, until a coordinator is
// found: a name may not resolve yet, and the first process to bind the port hosts. If the endpoint has several ports
// the coordinator listens at the first that is free, and nodes try all of them.
class EndpointDiscovery : public Discovery {
 public:
  EndpointDiscovery(net::Loop& loop, const RendezvousSettings& settings, protocol::AgentId own, ToStore to_store,
                    OnHosting on_hosting);

  void find(const Known& known, OnFound on_found) override;
  void keep(Leader leader, Secret secret) override {
    gossip_sender_.emplace(loop_, settings_, std::move(leader), std::move(secret));
  }
  void stop() override { ++attempt_; }
  void reached(std::uint16_t port) override { reached_ = port; }
  std::string explain(const std::string& problem) const override;
  discovery::EndpointAdvice advice() const override { return advice_; }
  std::vector<std::uint16_t> peer_ports() const override;

 private:
  void resolve_endpoint(OnFound on_found);
  Way way(Result<std::vector<std::string>> resolved);
  Way way_to(const RendezvousSettings::Host& host, Result<std::vector<std::string>> resolved) const;
  std::vector<std::string> ways_home(std::vector<std::string> resolved) const;
  bool host_if_ours(const Way& way);
  bool open_one();
  std::vector<std::uint16_t> ports_from(std::uint16_t first) const;
  std::uint16_t port_after(std::uint16_t port) const;

  net::Resolver resolver_;
  EndpointList list_;
  std::optional<GossipSender> gossip_sender_;
  std::uint64_t attempt_ = 0;
  bool is_sure_ = false;   // the endpoint leads to server()
  bool may_begin_ = true;  // the present attempt may open a coordinator
  discovery::EndpointAdvice advice_;
  std::string elsewhere_;   // why the endpoint that was looked up last does not lead here, as a clause
  bool has_asked_ = false;  // at an endpoint that is no address of this node
  bool told_why_not_ = false;
  bool told_no_port_ = false;
  // The coordinator at one of several ports may be another job's. The next attempt begins at the next port, unless this
  // node's coordinator was found.
  std::uint16_t first_port_ = 0;  // 0: the endpoint's own port
  std::optional<std::uint16_t> reached_;
};

}  // namespace elastic::transport
