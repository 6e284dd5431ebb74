#include "rendezvous/membership/training_port.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "rendezvous/protocol/limits.h"
#include "src/base/text.h"

namespace elastic::membership {

using protocol::PortRange;
using protocol::TrainingPorts;

namespace {

constexpr int kMaxAboveStart = 10'000;
constexpr int kMaxFirst = 65'500;
constexpr std::uint16_t kLastPort = std::numeric_limits<std::uint16_t>::max();

// The highest port that may be the first of HCCL's.
int highest_first(int start) { return std::max(start, std::min(start + kMaxAboveStart, kMaxFirst)); }

// The last port that HCCL may use.
int last_port(int start) { return std::min<int>(highest_first(start) + kTrainingPorts - 1, kLastPort); }

std::string name_of(const NodePorts& node) {
  if (node.address.empty()) return "this node";
  return format("node {} ({})", node.node_rank, printable(node.address));
}

// The first of the lowest ports in a row that are free, of the ports that all the nodes have looked at.
std::optional<std::uint16_t> first_free(const std::vector<const NodePorts*>& nodes) {
  int first = 0;
  int last = kLastPort;
  std::vector<PortRange> in_use;
  for (const NodePorts* node : nodes) {
    first = std::max<int>(first, node->ports.start);
    last = std::min(last, last_port(node->ports.start));
    in_use.insert(in_use.end(), node->ports.in_use.begin(), node->ports.in_use.end());
  }
  std::ranges::sort(in_use, {}, &PortRange::first);
  for (const PortRange& range : in_use) {
    if (range.first >= first + kTrainingPorts) break;
    first = std::max(first, range.last + 1);
  }
  if (first + kTrainingPorts - 1 > last) return {};
  return static_cast<std::uint16_t>(first);
}

// Why no ports are free on all nodes, as a clause.
std::string reason(const std::vector<NodePorts>& nodes) {
  std::vector<std::string> full;
  for (const NodePorts& node : nodes) {
    if (!first_free({&node})) full.push_back(name_of(node));
  }
  const auto [low, high] =
      std::ranges::minmax_element(nodes, {}, [](const NodePorts& node) { return node.ports.start; });
  const int from = high->ports.start;
  const int to = last_port(low->ports.start);
  if (full.empty() && from > to) {
    return format("{} looks at ports up to {}, and {} at those from {} on", name_of(*low), to, name_of(*high), from);
  }
  const std::string ports = format("{} TCP ports in a row", kTrainingPorts);
  if (full.empty()) return format("no {} from {} to {} are free on all nodes", ports, from, to);
  const std::size_t shown = std::min<std::size_t>(full.size(), 4);
  const std::string more = shown < full.size() ? format(" and {} more", full.size() - shown) : "";
  full.resize(shown);
  return format("{}{} has no {} that are free from {} to {}", join(full, ", "), more, ports, from, to);
}

}  // namespace

TrainingPorts look_at_ports(std::uint16_t start, const std::function<bool(std::uint16_t port)>& is_free) {
  TrainingPorts out{.start = start};
  for (int port = start; port <= last_port(start); ++port) {
    const auto number = static_cast<std::uint16_t>(port);
    if (is_free(number)) continue;
    // Free ports between two others are of no use if they are too few.
    const int before = out.in_use.empty() ? start - 1 : int{out.in_use.back().last};
    const bool is_near = port - before <= kTrainingPorts;
    if (is_near && !out.in_use.empty()) {
      out.in_use.back().last = number;
    } else if (out.in_use.size() < limits::kPortRanges) {
      out.in_use.push_back({is_near ? start : number, number});
    } else {
      out.in_use.back().last = kLastPort;
      break;
    }
  }
  return out;
}

AgreedPort agree_on_port(const std::vector<NodePorts>& nodes) {
  if (nodes.empty()) return {};
  std::vector<const NodePorts*> all;
  for (const NodePorts& node : nodes) all.push_back(&node);
  if (const auto first = first_free(all)) return {.first = *first};
  return {.why_none =
              format("HCCL's ports are not agreed on, and HCCL_IF_BASE_PORT stays as each node was started: {}; "
                     "free some ports, or give all nodes another --training-port",
                     reason(nodes))};
}

}  // namespace elastic::membership
