#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.h"
#include "tests/simulation/timeline.h"

namespace elastic::simulation {

class Node;
class Server;
class Simulation;

// Records since when nodes could reach each other, and when a coordinator last had the votes of a quorum. A node that
// gives up where every node has a peer port must have had no quorum in reach: else one of them should have been
// elected, and it should have found that one.
class Company {
 public:
  explicit Company(Simulation& simulation) : simulation_(simulation) {}

  // The network, or a process, has changed.
  void look();
  // A coordinator has handled an event.
  void has_acted(const Server& server);
  // A server is about to vanish with its host, or to be stopped. The nodes that have voted for a candidate there are
  // bound by their votes, and learn nothing of that before a loss timeout is over.
  void falls_silent(const Server& server);

  // The agent looks for no coordinator until then.
  void is_told_to_wait(protocol::AgentId agent, Ms until_ms) { waits_until_ms_[agent] = until_ms; }

  // Since `from_ms` the node, and nodes that form a quorum of the last round with it, were all awake and reached each
  // other, all knew one of them as a next leader, and none of them had a coordinator, or a candidate that then fell
  // silent: in words; none if there was no such company.
  std::optional<std::string> chance(const Node& node, Ms from_ms) const;

 private:
  bool are_together(const Node& a, const Node& b) const;
  std::optional<Ms>& since(int a, int b);

  Simulation& simulation_;
  std::map<protocol::AgentId, Ms> waits_until_ms_;
  std::map<std::string, Ms> led_ms_;  // by job: when a coordinator had a quorum, or a candidate fell silent
  std::vector<std::vector<std::optional<Ms>>> since_ms_;  // by two nodes, the first of the greater index
};

}  // namespace elastic::simulation
