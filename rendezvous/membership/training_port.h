#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.h"

// The TCP ports that HCCL uses on all nodes of a round (--training-port, HCCL_IF_BASE_PORT). As with DLRover these are
// 16 in a row, one for each device that a node may have. The first of them is at most 10,000 above the start, and at
// most 65,500 unless the start itself is higher.
namespace elastic::membership {

// HCCL listens at so many ports in a row.
inline constexpr int kTrainingPorts = 16;
// The highest start with which all of them are ports.
inline constexpr int kHighestStart = 65'535 - kTrainingPorts + 1;

// What a node tells of its ports. `is_free` says whether HCCL could listen at a port now; it is called for each port
// that a start can lead to, in ascending order.
protocol::TrainingPorts look_at_ports(std::uint16_t start, const std::function<bool(std::uint16_t port)>& is_free);

// A node of a round, and what it has told.
struct NodePorts {
  int node_rank = 0;
  std::string address = {};  // the node's name; empty: it is alone in its job
  protocol::TrainingPorts ports = {};
};

struct AgreedPort {
  std::uint16_t first = 0;    // the first port; 0: there is none, or no node has asked for any
  std::string why_none = {};  // a sentence for the users; empty: no ports are missing
};

// The lowest ports in a row that are free on all these nodes, from the highest of their starts on.
AgreedPort agree_on_port(const std::vector<NodePorts>& nodes);

}  // namespace elastic::membership
