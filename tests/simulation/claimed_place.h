#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rendezvous/locate/claimant.h"
#include "tests/simulation/claim_register.h"

namespace elastic::simulation {

class Node;
class Server;
class Simulation;

// How a node finds the coordinator by a claim, and hosts it: carries out what locate::Claimant decides, as
// transport::ClaimedPlace does. It lives as long as one elastic-run; what comes after that is not delivered.
class ClaimedPlace {
 public:
  struct Handlers {
    // An attempt is over: where the coordinator is (`port` is a ListenerId), or why none was found.
    std::function<void(ListenerId port, bool is_own)> found;
    std::function<void(const std::string& problem)> not_found;
  };
  ClaimedPlace(Simulation& simulation, Node& node, Server& server, ClaimRegister& claims, std::uint64_t random,
               Handlers handlers);

  void find(bool belongs);
  // No answer of the present attempt is wanted any more.
  void stop() { ++attempt_; }
  void tried(locate::Tried how) { claimant_.tried(how); }
  void withdraw(std::function<void()> done);

 private:
  using Claimant = locate::Claimant;
  using Taken = Claimant::Effects (Claimant::*)(const locate::RegisterAnswer&, std::int64_t);

  void perform(const Claimant::Effects& effects);
  void perform(const Claimant::Read&);
  void perform(const Claimant::Write& effect);
  void perform(const Claimant::Renew& effect);
  void perform(const Claimant::TakeBack& effect);
  void perform(const Claimant::RenewAt& effect);
  void perform(const Claimant::StopRenewing&) { ++renewal_; }
  void perform(const Claimant::Open& effect);
  void perform(const Claimant::ActUntil& effect);
  void perform(const Claimant::Hosts&) {}
  void perform(const Claimant::Close&);
  void perform(const Claimant::Depose& effect);
  void perform(const Claimant::Found& effect);
  void perform(const Claimant::NotFound& effect);
  void perform(const Claimant::Withdrawn&);
  void perform(const Claimant::Tell& effect);
  // Delivers an answer to the node's process, unless `number` has changed by then.
  ClaimRegister::Done deliver(Taken take, const std::uint64_t& number);

  Simulation& simulation_;
  Node& node_;
  Server& server_;
  ClaimRegister& claims_;
  Handlers handlers_;
  std::uint32_t launch_;  // of the node's process
  Claimant claimant_;
  std::function<void()> withdrawn_;
  std::uint64_t attempt_ = 0;
  std::uint64_t renewal_ = 0;
};

}  // namespace elastic::simulation
