#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/protocol/messages.h"
#include "rendezvous/protocol/session.h"
#include "src/net/loop.h"
#include "src/process/guardian.h"

namespace elastic::agent {
class Lifecycle;
class Link;
}  // namespace elastic::agent

namespace elastic::run {

class JobCoordinator;

// What the guardian is told of this node's rounds, so that it can act where this process cannot: it kills workers whose
// lease is over, and once a killed launcher's workers are gone it tells the coordinator so.
class GuardianOrders {
 public:
  struct Handlers {
    std::function<void(int signal)> on_signal;    // the guardian has got this signal
    std::function<void(pid_t guardian)> on_lost;  // it has died; called once, and is_lost() holds from then on
  };
  // `job`: its --rdzv-id.
  GuardianOrders(net::Loop& loop, process::GuardianChannel guardian, std::string job, Handlers handlers);
  ~GuardianOrders();

  // process::GuardianLink::descriptor().
  int descriptor() const { return guardian_.descriptor(); }
  bool is_lost() const { return is_lost_; }

  // The workers of this round are about to be started.
  void begin_round(protocol::RoundNumber round, const agent::Link& link, const JobCoordinator& coordinator);
  // To be called after each event of the agent's.
  void renew(const agent::Lifecycle& lifecycle, const agent::Link& link, const JobCoordinator& coordinator);
  // No process of the round is left, or none that the node waits for.
  void end_round();
  // The job is over for this node. `left_behind`: processes of its workers are left.
  void finish(bool left_behind) const;
  // All workers are stopped, as SIGTSTP asked.
  void pause() const { guardian_.send({process::GuardianMessage::Kind::kPaused, 0}); }
  void leave_background() { guardian_.leave_background(); }
  // The guardian is to end with this exit status, and not to wait long for this process, which a thread that hangs
  // keeps from ending.
  void leave(int status) const { guardian_.send({process::GuardianMessage::Kind::kLeaving, status}); }

 private:
  void renew_lease(const agent::Lifecycle& lifecycle, const agent::Link& link);
  void renew_death_notice(const agent::Link& link, const JobCoordinator& coordinator);

  // What the guardian sends when the launcher was killed while the workers of a round run.
  struct DeathNotice;

  std::string job_;
  pid_t pid_;  // of the guardian
  bool is_lost_ = false;
  std::optional<std::int64_t> lease_ms_;
  std::unique_ptr<DeathNotice> death_notice_;
  protocol::ByteString death_notice_bytes_;
  process::GuardianLink guardian_;
};

}  // namespace elastic::run
