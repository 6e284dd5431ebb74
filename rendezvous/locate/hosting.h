#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Who hosts the coordinator: the node that the endpoint leads to. docs/rendezvous.md has the rules for users.
namespace elastic::locate {

// What a node does for its job to have a coordinator.
enum class Hosting : std::uint8_t {
  // It opens the coordinator, and its own agent goes there.
  kHosts,
  // It opens the coordinator, for the endpoint may lead to it; but its own agent looks for one at the endpoint, as
  // everybody does, and goes to the one at home only when another node has come there. So a guess that is
  // wrong leaves an open port without visitors, never a second job beside the true one.
  kOffers,
  // It opens nothing, and looks for the coordinator at the endpoint.
  kAsks,
};

// What is known when the question is put. Addresses are numeric; scopes and IPv4 mapped into IPv6 do not matter.
struct HostingView {
  std::string endpoint_host;               // as typed: a name or an address, without port and brackets
  std::vector<std::string> resolved;       // the addresses that it stands for (its own where it is one)
  std::string resolve_error;               // why there are none, for the reason
  std::vector<std::string> own_addresses;  // of all interfaces that are up
  std::string host_name;                   // as gethostname(2) has it
  std::string full_host_name;              // with its domain, or the same where none is known
  std::optional<bool> is_host;             // the key of --rdzv-conf, or known from where the job was started
  std::string is_host_source = {};         // of the latter, as a clause
  std::optional<int> node_rank;            // claimed by --node-rank or the environment, not a default
};

struct HostingDecision {
  Hosting hosting = Hosting::kAsks;
  // Why, as a clause for --dry-run and the log: "node0 is 10.0.0.5, an address of this node".
  std::string reason;
};

// The first rule that applies, torchrun's in the main (its own: 1 to 4, of 4 only what the host name stands for):
//   1. is_host says it.
//   2. localhost, a loopback address, 0.0.0.0 and :: are every node itself: hosts.
//   3. The endpoint is this host's name, short or full: hosts.
//   4. The endpoint stands for an address of this node: hosts.
//   5. Its first label is this host's (a service's name, "job-0.training.svc" on job-0): hosts while the name
//      stands for nothing; offers where it stands for an address that is not ours, which may be the service's
//      or another host's of that name.
//   6. Node rank 0 is claimed: offers. The endpoint may lead here through an address that no interface has (a
//      service, a published port of a container), or to another node: ranks need not follow the endpoint.
//   7. Asks.
// To be asked again with each new look-up of the endpoint, until the agent has found a coordinator: a name
// that stands for nothing today may be ours tomorrow.
HostingDecision decide_hosting(const HostingView& view);

}  // namespace elastic::locate
