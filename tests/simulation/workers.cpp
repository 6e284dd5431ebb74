#include "tests/simulation/workers.h"

#include <algorithm>
#include <csignal>

#include "src/base/signals.h"

namespace elastic::simulation {

namespace {

const int kSigAbrt = *signal_number("ABRT");

// The peers of a worker that has died fail so long after it, as with gloo.
constexpr Ms kPeersFailFromMs = 27;
constexpr Ms kPeersFailToMs = 45;
constexpr Ms kLongestKillMs = 30;
constexpr Ms kLookAgainMs = 250;

}  // namespace

std::size_t Workers::find_world(const std::string& job, protocol::Incarnation incarnation,
                                const agent::StartWorkers& order) {
  for (std::size_t i = worlds_.size(); i-- > 0;) {
    const World& known = worlds_[i];
    if (known.job == job && known.incarnation == incarnation && known.round == order.round.round &&
        known.membership == order.round.membership && known.term == order.round.fence.term) {
      return i;
    }
  }
  worlds_.push_back({.job = job,
                     .incarnation = incarnation,
                     .round = order.round.round,
                     .membership = order.round.membership,
                     .term = order.round.fence.term,
                     .world_size = order.round.place.world_size,
                     .store = order.store,
                     .takes_ms = settings_.training_ms + random_.range(0, settings_.training_ms)});
  return worlds_.size() - 1;
}

WorkerId Workers::start(int node, std::uint32_t launch, const std::string& job, protocol::Incarnation incarnation,
                        const agent::StartWorkers& order, int local_rank) {
  const auto id = static_cast<WorkerId>(all_.size());
  Worker worker{.node = node,
                .launch = launch,
                .local_rank = local_rank,
                .rank = order.round.place.base_rank + local_rank,
                .world = find_world(job, incarnation, order)};
  if (random_.chance(settings_.stubborn_percent))
    worker.temper = Temper::kIgnores;
  else if (random_.chance(settings_.saving_percent))
    worker.temper = Temper::kSaves;
  World& world = worlds_[worker.world];
  world.workers.push_back(id);
  ++world.unaware;
  worker.place = alive_.size();
  if (by_rank_.size() <= static_cast<std::size_t>(worker.rank))
    by_rank_.resize(static_cast<std::size_t>(worker.rank) + 1);
  by_rank_[static_cast<std::size_t>(worker.rank)].push_back(id);
  const bool complete = ++world.started == world.world_size;
  all_.push_back(worker);
  alive_.push_back(id);
  if (complete) all_are_there(worker.world);
  return id;
}

void Workers::all_are_there(std::size_t index) {
  const World& world = worlds_[index];
  for (const WorkerId id : world.workers) {
    timeline_.after(world.takes_ms + random_.range(0, 20), [this, id] { try_to_succeed(id); });
  }
  if (all_are_started) all_are_started(index);
}

// Training goes on only while all workers can reach each other.
void Workers::try_to_succeed(WorkerId id) {
  const Worker& worker = all_[id];
  if (!worker.alive || worker.told || worker.killed) return;
  if (goes_on && goes_on(worker.world)) {
    timeline_.after(kLookAgainMs, [this, id] { try_to_succeed(id); });
    return;
  }
  const int host = host_of(worker.node);
  bool waits = worker.stopped > 0;
  for (const WorkerId peer : worlds_[worker.world].workers) {
    const Worker& other = all_[peer];
    if (!other.alive && (other.told || !other.exit.success())) return;  // the worker hangs until it fails or is stopped
    if (other.alive && other.told) return;
    if (other.alive &&
        (other.stopped > 0 || (other.node != worker.node && !network_.reaches(host, host_of(other.node)))))
      waits = true;
  }
  if (waits) {
    timeline_.after(kLookAgainMs, [this, id] { try_to_succeed(id); });
    return;
  }
  ++worlds_[worker.world].succeeded;
  end(id, {});
}

void Workers::signal(WorkerId id, int signal) {
  Worker& worker = all_[id];
  if (!worker.alive) return;
  if (signal == SIGSTOP) {
    ++worker.stopped;
  } else if (signal == SIGCONT) {
    thaw(id);
  } else if (signal == SIGKILL) {
    if (worker.killed) return;
    worker.killed = true;
    timeline_.after(random_.range(1, kLongestKillMs), [this, id] {
      // No process of a frozen host dies before the thaw.
      if (network_.is_frozen(host_of(all_[id].node))) return;
      end(id, {.signal = SIGKILL});
    });
  } else if ((signal == SIGTERM || signal == SIGINT) && !worker.told) {
    worker.told = true;
    if (!worker.doomed) --worlds_[worker.world].unaware;
    if (worker.temper == Temper::kIgnores) return;
    const bool saves = worker.temper == Temper::kSaves;
    const Ms delay_ms = saves ? random_.range(50, 1500) : random_.range(0, 3);
    const ExitStatus exit = saves && random_.chance(50) ? ExitStatus{} : ExitStatus{.signal = signal};
    timeline_.after(delay_ms, [this, id, exit] {
      if (all_[id].stopped == 0) end(id, exit);
    });
  }
}

void Workers::fail(WorkerId id, ExitStatus exit) {
  if (all_[id].stopped == 0 && !all_[id].killed) end(id, exit);
}

void Workers::thaw(WorkerId id) {
  Worker& worker = all_[id];
  if (worker.stopped > 0) --worker.stopped;
  if (!worker.alive || worker.stopped > 0) return;
  if (worker.killed) {
    timeline_.after(random_.range(1, kLongestKillMs), [this, id] { end(id, {.signal = SIGKILL}); });
  } else if (worker.told && worker.temper != Temper::kIgnores) {
    timeline_.after(random_.range(0, 3), [this, id] { end(id, {.signal = SIGTERM}); });
  }
}

void Workers::vanish(WorkerId id) {
  Worker& worker = all_[id];
  if (!worker.alive) return;
  dies(id, {.signal = SIGKILL});
}

void Workers::dies(WorkerId id, ExitStatus exit) {
  Worker& worker = all_[id];
  worker.alive = false;
  worker.exit = exit;
  if (!worker.told && !worker.doomed) --worlds_[worker.world].unaware;
  std::erase(by_rank_[static_cast<std::size_t>(worker.rank)], id);
  alive_[worker.place] = alive_.back();
  all_[alive_.back()].place = worker.place;
  alive_.pop_back();
}

void Workers::end(WorkerId id, ExitStatus exit) {
  Worker& worker = all_[id];
  if (!worker.alive) return;
  dies(id, exit);
  trace_.add(id);
  trace_.add(static_cast<std::uint64_t>(exit.code * 256 + exit.signal));
  if (!exit.success() || worker.told) peers_fail(worker);
  ended(id);
}

// The connections of the dead worker end, unless its host is down.
void Workers::peers_fail(const Worker& dead) {
  const int host = host_of(dead.node);
  World& world = worlds_[dead.world];
  if (world.unaware == 0) return;
  for (const WorkerId peer : world.workers) {
    Worker& other = all_[peer];
    if (!other.alive || other.told || other.doomed ||
        (other.node != dead.node && !network_.reaches(host, host_of(other.node))))
      continue;
    other.doomed = true;
    --world.unaware;
    timeline_.after(random_.range(kPeersFailFromMs, kPeersFailToMs), [this, peer] {
      if (!all_[peer].told) fail(peer, random_.chance(80) ? ExitStatus{.code = 1} : ExitStatus{.signal = kSigAbrt});
    });
  }
}

}  // namespace elastic::simulation
