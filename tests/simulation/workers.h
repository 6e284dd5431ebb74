#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rendezvous/agent/lifecycle.h"
#include "src/base/exit_status.h"
#include "tests/simulation/network.h"
#include "tests/simulation/random.h"
#include "tests/simulation/timeline.h"

namespace elastic::simulation {

// The number of a worker process, which no other one ever has.
using WorkerId = std::uint32_t;

// What a worker does on SIGTERM: it ends, saves for a while and ends, or ignores it.
enum class Temper : std::uint8_t { kHeeds, kSaves, kIgnores };

// A worker process. The workers of one round train together, and fail when one of them dies, as with gloo.
struct Worker {
  int node = 0;
  std::uint32_t launch = 0;  // of the agent that started it
  int local_rank = 0;
  int rank = 0;
  std::size_t world = 0;  // the index of its world
  Temper temper = Temper::kHeeds;
  bool alive = true;
  bool told = false;    // it got SIGTERM or SIGINT
  bool killed = false;  // it got SIGKILL, and the kernel has not ended it yet
  bool doomed = false;  // a peer has died, and this worker is about to notice
  int stopped = 0;      // it got SIGSTOP, or its host is frozen
  ExitStatus exit = {};
  std::size_t place = 0;  // its index among those alive
};

// All workers of a round.
struct World {
  std::string job;
  protocol::Incarnation incarnation = 0;
  protocol::RoundNumber round = 0;
  std::uint64_t membership = 0;
  protocol::Term term = 0;  // two coordinators may form a round of one number and the same nodes, one after the other
  int world_size = 0;
  protocol::StoreEndpoint store;
  Ms takes_ms = 0;
  int started = 0;
  int succeeded = 0;
  int unaware = 0;  // workers that are alive, and neither told to end nor about to notice a peer's death
  std::vector<WorkerId> workers = {};
};

class Workers {
 public:
  struct Settings {
    Ms training_ms = 200;
    int stubborn_percent = 10;
    int saving_percent = 20;
  };
  Workers(Timeline& timeline, Trace& trace, const Network& network, Random random, Settings settings)
      : timeline_(timeline), trace_(trace), network_(network), random_(random), settings_(settings) {}

  std::function<void(WorkerId)> ended;
  // Called when all workers of a world have been started. May be empty.
  std::function<void(std::size_t)> all_are_started;
  // Whether the workers of a world go on, though their time is over. May be empty.
  std::function<bool(std::size_t)> goes_on;
  std::function<int(int)> host_of;

  WorkerId start(int node, std::uint32_t launch, const std::string& job, protocol::Incarnation incarnation,
                 const agent::StartWorkers& order, int local_rank);
  void signal(WorkerId id, int signal);
  // The worker fails by itself.
  void fail(WorkerId id, ExitStatus exit);
  // The worker dies with its host: no process is told, and no connection of it ends.
  void vanish(WorkerId id);
  void freeze(WorkerId id) { ++all_[id].stopped; }
  void thaw(WorkerId id);

  const Worker& at(WorkerId id) const { return all_[id]; }
  const World& world(std::size_t index) const { return worlds_[index]; }
  const World& world_of(const Worker& worker) const { return worlds_[worker.world]; }
  const std::vector<WorkerId>& alive() const { return alive_; }
  // The workers of alive() that have this rank, of any world.
  const std::vector<WorkerId>& alive_with(int rank) const { return by_rank_[static_cast<std::size_t>(rank)]; }
  const std::vector<World>& worlds() const { return worlds_; }

 private:
  std::size_t find_world(const std::string& job, protocol::Incarnation incarnation, const agent::StartWorkers& order);
  void all_are_there(std::size_t index);
  void try_to_succeed(WorkerId id);
  void end(WorkerId id, ExitStatus exit);
  void dies(WorkerId id, ExitStatus exit);
  void peers_fail(const Worker& dead);

  Timeline& timeline_;
  Trace& trace_;
  const Network& network_;
  Random random_;
  Settings settings_;
  std::vector<Worker> all_;
  std::vector<World> worlds_;
  std::vector<WorkerId> alive_;
  std::vector<std::vector<WorkerId>> by_rank_;
};

}  // namespace elastic::simulation
