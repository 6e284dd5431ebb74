#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/coordinator/service.h"
#include "tests/simulation/network.h"
#include "tests/simulation/process.h"
#include "tests/simulation/random.h"
#include "tests/simulation/timeline.h"

namespace elastic::simulation {

class Simulation;

// The process that listens at the endpoint: the real coordinator::Service, which has no jobs when it is started again.
class Server : public ConnectionOwner {
 public:
  Server(Simulation& simulation, Random random) : simulation_(simulation), random_(random) {}

  void start();
  // The process dies as by SIGKILL: the kernel closes its connections.
  void crash();
  // The process dies with its host: its connections are not closed.
  void vanish();
  // The process ends with its node, since no job is left.
  void leave() { crash(); }
  bool is_up() const { return process_.is_alive(); }
  std::uint32_t launch() const { return process_.launch(); }
  bool is_paused() const { return process_.is_paused(); }
  void pause();
  void resume(bool timers_first);
  // The coordinator of a job; null if there is none.
  const coordinator::Coordinator* find(const std::string& job) const {
    return service_ ? service_->find(job) : nullptr;
  }
  const coordinator::Service* service() const { return service_ ? &*service_ : nullptr; }

  void connection_made(ConnectionId id) override;
  void connection_read(ConnectionId id, ByteString bytes) override;
  void connection_broken(ConnectionId id, const std::string& why) override;

 private:
  std::unique_ptr<coordinator::CheckPlan> make_recorded_check();
  void on(const coordinator::ServiceEvent& event);
  void perform(coordinator::ServiceEffect& effect);
  void plan_timer();

  Simulation& simulation_;
  Random random_;
  Process process_;
  std::optional<coordinator::Service> service_;
  std::optional<Ms> timer_at_ms_;
  std::uint64_t timer_ = 0;
};

// A check before training which finds the nodes unfit that sent "bad" or "slow". At most two phases.
std::unique_ptr<coordinator::CheckPlan> make_check(int phases);

}  // namespace elastic::simulation
