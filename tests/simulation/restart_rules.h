#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rendezvous/agent/lifecycle.h"
#include "rendezvous/coordinator/carried_state.h"
#include "rendezvous/protocol/codec.h"
#include "rendezvous/protocol/messages.h"
#include "tests/simulation/hang_said.h"
#include "tests/simulation/timeline.h"

namespace elastic::simulation {

class Node;
class Server;
class Simulation;

// What must hold with --hang=restart (docs/hangs.md, "What restart does"), beside HangInvariants:
//
// - A verdict is given by a coordinator that may act, and not while its round is being stopped. It ends the round only
//   if the user has given a limit, or one was learned from 16 steps; then it does end it. No round is stopped for a
//   hang without a verdict, and no agent signals its workers for one before it is told to.
// - Of the budget one hang is spent for each round that ends so, never more than there are, and no restart.
// - Who is out for it follows from the table: hard, or soft where another stands by or for the second time, and never a
//   soft one without whom there are too few. A node with a process that SIGKILL does not end is out, too, and is waited
//   for no longer than it takes to know. Nobody else is out, and who is out is in no further round.
// - A rank of another node at the same line, or one hang more than the budget has, ends the job; nothing else of it
// does.
// - What was spent, charged and learned, and who is out, is known to the next coordinator, if a round has run since.
class RestartRules {
 public:
  explicit RestartRules(Simulation& simulation) : simulation_(simulation) {}

  // A coordinator tells this verdict the first time.
  void told(const Node& node, const protocol::Stamp& stamp, const protocol::HangTold& message, const HangSaid& said,
            const Server& server);
  // A coordinator has sent this message.
  void sent(const Node& node, const protocol::Stamp& stamp, const protocol::CoordinatorMessage& message,
            const Server& server);
  // A coordinator is about to handle this.
  void takes(const Server& server, const std::string& job, const coordinator::Event& event);
  void agent_acts(const Node& node, const agent::Effect& effect);

  // What a successor does not know any more of hangs that the state before had; empty: nothing.
  static std::string lost_between(const coordinator::CarriedState& then, const coordinator::CarriedState& now);

 private:
  using Job = std::pair<std::string, protocol::Incarnation>;
  // A round as it was prepared last.
  struct Prepared {
    int nodes = 0;
    int restart_count = 0;
    coordinator::HangCharges::Record charges = {};
  };
  struct Decided {
    protocol::RoundNumber round = 0;
    bool ends_job = false;
    std::set<std::string> out = {};  // addresses
  };
  // What one coordinator has decided, in order, and who is out for a process that does not end, with that round.
  struct Start {
    std::vector<Decided> decided = {};
    std::map<std::string, protocol::RoundNumber> stuck = {};
    std::set<protocol::RoundNumber> stopped = {};
    std::set<protocol::RoundNumber> hung = {};           // of these: for a hang
    std::optional<protocol::RoundNumber> prepared = {};  // the last one here
  };
  // A coordinator: with Server::start_number(), since two of one term may follow each other where no promises decide.
  using Key = std::tuple<std::string, protocol::Incarnation, protocol::Term, std::uint64_t>;
  using Launch = std::pair<std::uint32_t, protocol::RoundNumber>;  // of an agent, with a round

  bool are_on() const;
  Key key_of(const Node& node, const protocol::Stamp& stamp, const Server& server) const;
  void on(const Node& node, const protocol::Stamp& stamp, const protocol::StopWorkers& message, const Server& server);
  void on(const Node& node, const protocol::Stamp& stamp, const protocol::PrepareRound& message, const Server& server);
  void on(const Node& node, const protocol::Stamp& stamp, const protocol::EndJob& message, const Server& server);
  void on(const Node& node, const protocol::Stamp& stamp, const protocol::Rejected& message, const Server& server);
  void on(const Node& node, const protocol::Stamp& stamp, const protocol::CollectEvidence& message,
          const Server& server);
  void on(const Node& node, const protocol::Stamp& stamp, const protocol::RunWorkers& message, const Server& server);
  void on(const Node&, const protocol::Stamp&, const auto&, const Server&) {}
  void check_grounds(const Node& node, const HangSaid& said);
  Decided expected(const Node& node, const HangSaid& said, const Prepared& round, const Server& server);
  void check_spent(const Job& job, const Start& start, const Prepared& now,
                   const protocol::PrepareRound& message) const;
  bool was_decided(const Job& job, protocol::RoundNumber round) const;
  void signals(const Node& node);
  void awaits(const Node& node);

  Simulation& simulation_;
  std::map<Job, std::map<protocol::RoundNumber, Prepared>> rounds_;
  std::map<Key, Start> starts_;
  // Addresses of nodes that could not end their workers of a round that a hang ended, as any coordinator has heard.
  std::map<Job, std::set<std::string>> may_be_stuck_;
  std::map<std::string, std::uint64_t> beats_;  // by job
  std::map<Job, protocol::RoundNumber> ran_;    // the last round that ran
  std::map<int, Launch> asked_;                 // by node: asked for evidence, and not told to end anything
  std::map<int, Launch> ends_;                  // by node: told to end its round for a hang
};

}  // namespace elastic::simulation
