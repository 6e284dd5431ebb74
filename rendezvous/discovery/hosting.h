#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Which node hosts the coordinator: the one that the endpoint's address belongs to. docs/rendezvous.md has the rules
// for users.
namespace elastic::discovery {

// What a node does about the coordinator.
enum class Hosting : std::uint8_t {
  // It opens the coordinator, and its own agent connects to that.
  kHosts,
  // It opens the coordinator, since the endpoint may lead to it; but its own agent connects to the endpoint as all
  // others do, and to its own coordinator only when another node has come there. If the guess is wrong there is an open
  // port without connections, but never a second job beside the right one.
  kOffers,
  // It opens nothing, and connects to the endpoint.
  kAsks,
};

// What the decision depends on. Addresses are numeric; scopes and IPv4 mapped into IPv6 do not matter.
struct HostingView {
  std::string endpoint_host;               // as typed: a name or an address, without port and brackets
  std::vector<std::string> resolved;       // the addresses that it resolves to
  std::string resolve_error;               // why it resolves to none
  std::vector<std::string> own_addresses;  // of all interfaces that are up
  std::string host_name;                   // from gethostname(2)
  std::string full_host_name;              // with its domain, if that is known
  std::optional<bool> is_host;             // is_host= of --rdzv-conf, or known from the batch system
  std::string is_host_source = {};         // what the batch system says, as a clause
  bool gives_way = false;                  // of several hosts that begin the job all but one give way: failover
  std::optional<int> node_rank;            // claimed by --node-rank or the environment, not a default
};

struct HostingDecision {
  Hosting hosting = Hosting::kAsks;
  // Why, as a clause for --dry-run and the log: "node0 is 10.0.0.5, an address of this node".
  std::string reason;
};

// The option by which the user has named the endpoint.
struct EndpointOption {
  std::string name = {};   // "--rdzv-endpoint"; empty: the endpoint was found in the environment
  bool takes_port = true;  // as HOST:PORT
};

// What a node that hosts the coordinator has to say about the endpoint while it waits for others.
struct EndpointAdvice {
  std::string text = {};    // a sentence without a full stop; empty: nothing
  bool is_mistake = false;  // nodes of other hosts cannot come here by this endpoint
  bool is_told = false;     // the user has read it already, and reads it again at the end
};

// The first rule that applies (1 to 4 are torchrun's, which compares the addresses of the host name only):
//   1. is_host decides.
//   2. localhost, a loopback address, 0.0.0.0 and :: mean each node itself: kHosts.
//   3. The endpoint is this host's name, short or full: kHosts.
//   4. The endpoint resolves to an address of this node: kHosts.
//   5. The endpoint's first label is this host's name (a service, "job-0.training.svc" on job-0): kHosts while the name
//      does not resolve; kOffers if it resolves to an address that this node does not have, which may be the service's
//      or that of another host of this name.
//   6. Node rank 0 is claimed: kOffers. The endpoint may lead here through an address that no interface has (a service,
//      a published port of a container), or to another node: ranks need not follow the endpoint.
//   7. Otherwise kAsks.
// To be called after each new look-up of the endpoint, until the agent has found a coordinator: a name that does not
// resolve yet may resolve to this node later.
HostingDecision decide_hosting(const HostingView& view);

// Why the endpoint does not lead to this node, or leads to it though is_host=0: "node0 is 10.0.0.9, which no interface
// of this node has". Empty: it leads here, or its name does not resolve.
std::string why_elsewhere(const HostingView& view);

// For a node that hosts (kHosts) and listens at `port`. Of an endpoint that was found there is something to say only
// where it leads elsewhere.
EndpointAdvice advice_of_host(const HostingView& view, std::uint16_t port, const EndpointOption& option);

}  // namespace elastic::discovery
