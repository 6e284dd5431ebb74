#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/discovery/hosting.h"
#include "src/base/address.h"
#include "src/base/text.h"

namespace elastic::transport {

// The port of an endpoint that names none, torchrun's for c10d.
inline constexpr std::uint16_t kDefaultPort = 29400;

// How nodes of a Slurm step authenticate each other if the user has given no secret.
struct MungeSettings {
  std::string step = {};    // "slurm-1234.0"; empty: munge is not used
  std::string socket = {};  // munged's socket; empty: libmunge's default
  bool required = false;    // munged must answer; else it is used if it does
};

// How the nodes of a job find each other.
struct RendezvousSettings {
  enum class Place {
    kEndpoint,  // the node that binds the endpoint hosts the coordinator
    kFile,      // an entry in a file says where it is
  };
  std::string job = {};               // --rdzv-id
  std::optional<int> node_rank = {};  // --node-rank, if the user gave it
  std::string node_address = {};      // --local-addr, if the user gave it: by which other nodes reach this one
  int max_nodes = 1;
  bool alone = true;  // the job has one node: its coordinator is in its own process, and nothing else here is used
  Place place = Place::kEndpoint;
  std::string path = {};                       // of kFile
  std::uint16_t coordinator_port = 0;          // the coordinator's, on whichever node it is; 0: a free one
  std::string host = {};                       // of the endpoint: a name or a numeric address; unused with kFile
  std::uint16_t port = 0;                      // of the endpoint
  bool is_default = false;                     // the user has named no host: the endpoint is each host itself
  discovery::EndpointOption option = {};       // by which the user has named it
  std::vector<std::uint16_t> more_ports = {};  // of the endpoint: tried after `port`, in this order
  // Further hosts of the endpoint, at which a node of the running job may be found. They never begin it.
  struct Host {
    std::string name;  // or a numeric address
    std::uint16_t port = 0;
    bool operator==(const Host&) const = default;
  };
  std::vector<Host> more_hosts = {};
  std::uint16_t peer_port = 0;       // of this node; 0: the endpoint's if that names this host, else a free one
  std::optional<bool> is_host = {};  // whether this node hosts the coordinator, if that is known
  std::string is_host_source = {};   // what says so, as a clause; empty: is_host= in --rdzv-conf
  // With is_host: where the endpoint is no address of this node, who answers there may be the host (static).
  bool asks_first = false;
  // Each node can host the coordinator when that is lost, also while its process lives: failover=majority.
  bool has_peer_server = false;
  bool refusal_is_proof = true;      // a refused connection says that no process is there: failover_evidence
  bool serves_own_job_only = false;  // a coordinator in this process rejects other jobs; else it serves them, too
  bool store_at_endpoint = false;    // with static the coordinator and the workers' store have one port
  std::string secret = {};
  MungeSettings munge = {};
  bool status_open = false;  // the status shows names and texts to all, not only to those with the job's token
  std::int64_t loss_timeout_ms = 5'000;  // of a coordinator in this process
  bool gives_loss_timeout = false;       // the user has given it, and is told if another coordinator has another one
  std::int64_t rejoin_ms = 30'000;
};

// "host0:29400", "[::1]:29400"; "file /shared/meeting".
inline std::string endpoint_text(const RendezvousSettings& rendezvous) {
  if (rendezvous.place == RendezvousSettings::Place::kFile) return format("file {}", printable(rendezvous.path));
  const std::size_t more = rendezvous.more_hosts.size();
  return with_port(rendezvous.host, rendezvous.port) +
         (more == 0 ? "" : format(" or {} more host{}", more, more == 1 ? "" : "s"));
}

}  // namespace elastic::transport
