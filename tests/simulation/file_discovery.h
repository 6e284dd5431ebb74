#pragma once

#include <cstdint>
#include <functional>

#include "rendezvous/discovery/entry_search.h"
#include "tests/simulation/entry_register.h"

namespace elastic::simulation {

class Node;
class Server;
class Simulation;

// How a node finds the coordinator by an entry in a file, and keeps that entry: carries out what discovery::EntrySearch
// and discovery::EntryKeeper decide, as transport::FileDiscovery does. It lives as long as one elastic-run; what comes
// after that is not delivered.
class FileDiscovery {
 public:
  struct Handlers {
    // An attempt is over: where a coordinator may be (`port` is a ListenerId), or why none was found.
    std::function<void(const discovery::EntrySearch::Found& found)> found;
    std::function<void(const std::string& problem)> not_found;
  };
  FileDiscovery(Simulation& simulation, Node& node, Server& server, EntryRegister& entries, Handlers handlers);

  void find(const discovery::EntrySearch::Known& known);
  // No answer of the present attempt is wanted any more.
  void stop() { ++attempt_; }
  void tried(discovery::Tried how);
  void withdraw(std::function<void()> done);
  // The leader looks at the entry now.
  void look_at_entry();

 private:
  using EntrySearch = discovery::EntrySearch;
  using Keeper = discovery::EntryKeeper;

  // Delivers an answer to the node's process, unless `number` has changed by then.
  EntryRegister::Done deliver(const std::uint64_t& number, std::function<void(const discovery::RegisterAnswer&)> take);

  void perform(const EntrySearch::Effects& effects);
  void perform(const EntrySearch::Read&);
  void perform(const EntrySearch::Write& effect);
  void perform(const EntrySearch::Open&);
  void perform(const EntrySearch::Hosts&) {}
  void perform(const EntrySearch::Close&);
  void perform(const EntrySearch::Found& effect);
  void perform(const EntrySearch::NotFound& effect);
  void perform(const discovery::Tell& effect);

  void plan_look();
  void heard(const Keeper::Effects& effects);
  void perform(const Keeper::Effects& effects);
  void perform(const Keeper::Read&);
  void perform(const Keeper::Write& effect);
  void perform(const Keeper::Gossip& effect);
  void perform(const Keeper::Withdrawn&);

  Simulation& simulation_;
  Node& node_;
  Server& server_;
  EntryRegister& entries_;
  Handlers handlers_;
  std::uint32_t launch_;  // of the node's process
  EntrySearch search_;
  Keeper keeper_;
  std::function<void()> withdrawn_;
  std::uint64_t attempt_ = 0;
  std::uint64_t keeping_ = 0;
  bool is_asking_ = false;
  bool looks_again_ = false;
  bool has_written_ = false;
};

}  // namespace elastic::simulation
