#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/text.h"

namespace elastic::transport {

// The port of an endpoint that names none, torchrun's for c10d.
inline constexpr std::uint16_t kDefaultPort = 29400;

// How nodes of a Slurm step prove themselves without a secret of the user's.
struct MungeSettings {
  std::string step = {};    // "slurm-1234.0"; empty: munge is not used
  std::string socket = {};  // munged's; empty: the one that libmunge knows
  bool required = false;    // else it is used where it answers
};

// How the nodes of a job find each other.
struct MeetingSettings {
  enum class Place {
    kEndpoint,  // who binds the endpoint hosts the coordinator
    kFile,      // a file says who hosts it
    kTcpStore,  // the same by a key of a PyTorch TCPStore, which somebody else runs at the endpoint
  };
  std::string job = {};               // what --rdzv-id names
  std::optional<int> node_rank = {};  // of this node, if the user has said so
  std::string node_address = {};      // by which the others reach this node, if the user has said so
  int max_nodes = 1;
  bool alone = true;  // one node: its coordinator is in its own process, and nothing of this is used
  Place place = Place::kEndpoint;
  std::string path = {};                       // of kFile
  std::uint16_t coordinator_port = 0;          // of kFile and kTcpStore: where it listens; 0: a free one
  std::string host = {};                       // of the endpoint: a name or a numeric address; not of kFile
  std::uint16_t port = 0;                      // of the endpoint
  bool is_default = false;                     // the endpoint's host is one that nobody has named: every host itself
  std::vector<std::uint16_t> more_ports = {};  // of the endpoint: tried after `port`, in this order
  std::optional<bool> is_host = {};            // whether this node hosts the coordinator, if anybody has said so
  std::string is_host_source = {};             // who, as a clause; empty: is_host= in --rdzv-conf
  bool serves_own_job_only = false;  // other jobs are turned away; else a coordinator of ours serves them, too
  bool store_at_endpoint = false;    // static: one port for the coordinator and the workers' store
  std::string secret = {};
  MungeSettings munge = {};
  bool status_open = false;  // names and texts are in everybody's status
  std::int64_t loss_timeout_ms = 5'000;
  std::int64_t rejoin_ms = 30'000;
};

// "host0:29400", "[::1]:29400"; "TCPStore host0:29400"; "file /shared/meeting".
inline std::string endpoint_text(const MeetingSettings& meeting) {
  if (meeting.place == MeetingSettings::Place::kFile) return format("file {}", printable(meeting.path));
  const bool is_v6 = meeting.host.contains(':');
  const std::string store = meeting.place == MeetingSettings::Place::kTcpStore ? "TCPStore " : "";
  return store + (is_v6 ? format("[{}]:{}", meeting.host, meeting.port)
                        : format("{}:{}", printable(meeting.host), meeting.port));
}

}  // namespace elastic::transport
