// What strikes a node: its agent, its guardian, its host or a worker.
#include <utility>
#include <vector>

#include "src/base/signals.h"
#include "src/base/text.h"
#include "tests/simulation/node.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

void Node::crash_agent() {
  if (!process_.is_alive()) return;
  if (simulation_.trace().is_read()) simulation_.line(format("node {}: the agent dies", index_));
  process_.end();
  if (server_ != nullptr) server_->crash();
  simulation_.process_changes();
  simulation_.agent_died(*this);
  if (connection_ != 0) simulation_.network().close(connection_, End::kClient);
  connection_ = 0;
  guardian_lease_ms_.reset();
  ++guardian_timer_;
  guardian_waits_to_speak_ = !guardian_is_lost_ && word_of_launch_ == process_.launch();
  if (guardian_is_lost_) simulation_.workers_can_be_killed(*this);
  // Without a guardian the kernel kills the workers (PR_SET_PDEATHSIG).
  simulation_.timeline().after(random_.range(1, 4), [this] {
    if (!simulation_.network().is_up(host_)) return;
    guardian_kills();
    guardian_speaks_if_empty();
  });
}

void Node::crash_guardian() {
  if (!process_.is_alive() || guardian_is_lost_) return;
  if (simulation_.trace().is_read()) simulation_.line(format("node {}: the guardian dies", index_));
  guardian_is_lost_ = true;
  guardian_lease_ms_.reset();
  ++guardian_timer_;
  process_.run(false, [this] { on(agent::Event{agent::GuardianLost{}}); });
}

void Node::crash_host() {
  if (!simulation_.network().is_up(host_)) return;
  if (simulation_.trace().is_read()) simulation_.line(format("node {}: the host dies", index_));
  process_.end();
  serves_others_ = false;
  if (server_ != nullptr && server_->is_up()) server_->vanish();
  simulation_.agent_died(*this);
  connection_ = 0;
  guardian_lease_ms_.reset();
  ++guardian_timer_;
  guardian_waits_to_speak_ = false;
  word_.reset();
  for (const WorkerId id : std::exchange(workers_, {})) simulation_.workers().vanish(id);
  for (const WorkerId id : std::exchange(abandoned_, {})) simulation_.workers().vanish(id);
  simulation_.network().host_down(host_);
}

void Node::boot_host() {
  if (simulation_.network().is_up(host_)) return;
  if (simulation_.trace().is_read()) simulation_.line(format("node {}: the host is up again", index_));
  simulation_.network().host_up(host_);
}

void Node::pause_agent() {
  simulation_.process_changes();
  if (!process_.is_alive()) return;
  ++pauses_;
  process_.pause();
  if (server_ != nullptr && server_->is_up()) server_->pause();
}

void Node::resume_agent() {
  simulation_.process_changes();
  if (!process_.is_alive() || !process_.is_paused()) return;
  if (guardian_is_lost_) simulation_.workers_can_be_killed(*this);
  const bool timers_first = random_.chance(50);
  if (server_ != nullptr && server_->is_up()) server_->resume(timers_first);
  process_.resume(timers_first);
}

void Node::freeze() {
  if (!simulation_.network().is_up(host_)) return;
  ++pauses_;
  simulation_.network().freeze(host_);
  if (process_.is_alive()) process_.pause();
  if (server_ != nullptr && server_->is_up()) server_->pause();
  for (const WorkerId id : workers_) simulation_.workers().freeze(id);
}

void Node::thaw() {
  if (!simulation_.network().is_up(host_) || !simulation_.network().is_frozen(host_)) return;
  simulation_.network().thaw(host_);
  if (simulation_.network().is_frozen(host_)) return;
  for (const WorkerId id : std::vector<WorkerId>(workers_)) simulation_.workers().thaw(id);
  // The guardian checks the clock as soon as it runs, and so does the agent.
  const bool over = guardian_lease_ms_ && local_ms() >= *guardian_lease_ms_;
  const bool orphaned = !process_.is_alive() && !workers_.empty();
  if (over || orphaned) simulation_.timeline().after(random_.range(0, 3), [this] { guardian_kills(); });
  simulation_.workers_can_be_killed(*this);
  const bool timers_first = random_.chance(50);
  if (server_ != nullptr && server_->is_up()) server_->resume(timers_first);
  if (process_.is_alive()) process_.resume(timers_first);
}

void Node::signal(int signal) {
  if (!process_.is_alive()) return;
  if (simulation_.trace().is_read()) simulation_.line(format("node {}: gets {}", index_, signal_name(signal)));
  was_signalled_ = true;
  process_.run(false, [this, signal] { on(agent::Event{agent::SignalReceived{signal}}); });
}

void Node::crash_worker(int local_rank, ExitStatus exit) {
  for (const WorkerId id : workers_) {
    const Worker& worker = simulation_.workers().at(id);
    if (worker.local_rank % setup_.workers != local_rank % setup_.workers || worker.launch != process_.launch())
      continue;
    if (simulation_.trace().is_read()) simulation_.line(format("node {}: worker {} fails", index_, local_rank));
    return simulation_.workers().fail(id, exit);
  }
}

}  // namespace elastic::simulation
