#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "health/hang/hang_facts.h"
#include "rendezvous/protocol/messages.h"
#include "tests/simulation/network.h"
#include "tests/simulation/timeline.h"

namespace elastic::simulation {

class Node;
class Server;
class Simulation;
struct Hang;

// What must hold of what nodes are told about hangs:
//
// - A verdict names nobody but the rank, or the node of the rank, that hangs, and nobody where nobody is at fault. If
//   all nodes have answered with all that there was to see, it does name that one. Evidence that is of two moments,
//   since the hang ended while it was read, may name anybody.
// - It comes after all nodes have answered that were asked and have a session, or after 20 s.
// - It comes only if the round has made no progress for a moment at least in the time that it tells of.
// - A coordinator tells a node of a hang once, until it is over.
//
// hangs.cpp adds when a hang must be told, and that it is over.
class HangInvariants {
 public:
  explicit HangInvariants(Simulation& simulation) : simulation_(simulation) {}

  // A coordinator has sent this message in this connection.
  void sent(const Node& node, ConnectionId connection, const protocol::Stamp& stamp,
            const protocol::CollectEvidence& message, const Server& server);
  void sent(const Node& node, ConnectionId connection, const protocol::Stamp& stamp, const protocol::HangTold& message,
            const Server& server);
  void sent(const Node& node, ConnectionId connection, const protocol::Stamp& stamp, const protocol::HangOver& message,
            const Server& server);
  // An agent has sent this message.
  void answered(ConnectionId connection, const protocol::NodeEvidence& message);
  // A coordinator takes this message.
  void taken(const Server& server, const std::string& job, protocol::Incarnation incarnation,
             const protocol::NodeEvidence& message);
  // A node has read its evidence, while its round hung or not: all that there was to see, or some of it.
  void has_read(const Node& node, const protocol::CollectEvidence& order, bool hangs, bool is_whole);

 private:
  // A start of a server, a job, an incarnation and a round of it.
  using Key = std::tuple<std::uint64_t, std::string, protocol::Incarnation, protocol::RoundNumber>;
  struct Collection {
    std::uint32_t number = 0;
    Ms asked_ms = 0;
    std::map<ConnectionId, bool> answered = {};
    std::vector<hang::NodeFacts> taken = {};
  };
  struct Culprit {
    std::optional<std::int64_t> rank = {};
    std::string node = {};
  };
  // What a verdict says, by its report.
  struct Said {
    std::string cause;
    std::vector<Culprit> culprits;
    bool is_complete = false;  // nothing is missing, as the report says itself
  };
  struct Read {
    std::uint32_t collection = 0;
    protocol::RoundNumber round = 0;
    bool hangs = false;
    bool is_whole = false;
  };
  Key key_of(const Node& node, const protocol::Stamp& stamp, protocol::RoundNumber round, const Server& server) const;
  const Said& said_by(const std::string& report);
  void check_wait(const Collection& collection) const;
  void check_names(std::size_t world, const Collection& collection, const protocol::HangTold& message, bool is_first);
  // What the nodes of a world have read for this collection, without those that have not.
  std::vector<Read> read_of(std::size_t world, const Collection& collection) const;
  bool all_is_read(std::size_t world, const Collection& collection) const;
  bool is_of_two_moments(std::size_t world, const Collection& collection) const;
  static bool is_like_a_step(const Hang& hang, const Collection& collection);

  Simulation& simulation_;
  std::map<Key, Collection> collections_;              // the last one of each
  std::map<std::pair<Key, ConnectionId>, bool> told_;  // a hang, which is not over
  std::map<int, Read> read_;                           // by node
  std::string report_;                                 // that was read last, and what it says
  Said said_;
};

}  // namespace elastic::simulation
