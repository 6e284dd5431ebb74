#include "tests/election/world.h"

#include <algorithm>

namespace elastic::election {

void World::fault() {
  later(random_.range(100 * kMs, static_cast<std::int64_t>(faults_) * kSecond), [this] { fault(); });
  const std::size_t machines = clocks_.size();
  const int kind = random_.number(1, 100);
  if (kind <= 12) {
    // A connection is reset, though both ends live.
    const std::size_t i = random_.next() % started_;
    if (nodes_[i].coordinator && coordinators_[*nodes_[i].coordinator]->node != i) nodes_[i].coordinator.reset();
  } else if (kind <= 35) {
    // The network is cut into two to four parts, or one way only.
    std::vector<int> part(machines);
    const int parts = random_.number(1, 3);
    for (int& each : part) each = random_.chance(60) ? 0 : random_.number(0, parts);
    note("cut: {}", names(part));
    const bool is_one_way = random_.chance(20);
    for (std::size_t a = 0; a < machines; ++a) {
      for (std::size_t b = 0; b < machines; ++b) cut_[a][b] = is_one_way ? part[a] < part[b] : part[a] != part[b];
    }
  } else if (kind <= 64) {
    cut_.assign(machines, std::vector<bool>(machines, false));
  } else if (kind <= 82) {
    const std::size_t machine = random_.next() % machines;
    paused_until_[machine] = now_ + random_.range(0, 7 * kSecond);
    note("machine {} pauses until {} ms", machine, paused_until_[machine] / kMs);
  } else if (kind <= 90) {
    die(random_.next() % started_, random_.chance(60));
  } else if (kind <= 96) {
    // The acting coordinator dies about as often as any node.
    for (const auto& c : coordinators_) {
      if (!c->acts(ms(c->machine))) continue;
      if (c->node) return die(*c->node, random_.chance(60));
      return end_process(*c, random_.chance(60));
    }
  } else {
    open(nodes_.size(), next_term(static_cast<protocol::Term>(random_.number(0, 40))));
  }
}

void World::die(std::size_t i, bool is_proven) {
  Node& node = nodes_[i];
  const auto alive =
      std::ranges::count(nodes_.begin(), nodes_.begin() + static_cast<std::ptrdiff_t>(started_), true, &Node::is_alive);
  if (!node.is_alive || alive == 1) return;
  node.is_alive = false;
  if (started_ < nodes_.size() && random_.chance(80)) {
    after(random_.range(0, 20 * kSecond), started_, [this, next = started_] { tick_node(next); });
    ++started_;
  }
  note("node {} dies, {}", i, is_proven ? "proven" : "silently");
  if (node.runs) node.gone_ms = std::min(ms(i), node.lease_until_ms) + kKillMs;
  node.runs.reset();
  for (std::size_t index = 0; index < coordinators_.size(); ++index) {
    Coordinator& c = *coordinators_[index];
    if (c.node == i) {
      end_process(c, is_proven);
    } else if (is_proven && !c.is_dead && !c.is_closed) {
      tell_of_death(index, i);
    }
  }
}

void World::tell_of_death(std::size_t index, std::size_t i) {
  const bool at_once = coordinators_[index]->attached.contains(i) && reaches(i, coordinators_[index]->machine);
  if (!at_once && random_.chance(50)) return;
  after(at_once ? random_.range(0, 30 * kMs) : random_.range(0, 5 * kSecond), coordinators_[index]->machine,
        [this, index, i] {
          Coordinator& c = *coordinators_[index];
          if (c.is_dead || c.is_closed || !c.lease) return;
          if (c.lease->died(agent(i), ms(c.machine))) ++seen_.kept_for_ever;
          drop(index, i);
        });
}

void World::end_process(Coordinator& c, bool is_proven) {
  if (c.is_dead) return;
  c.is_dead = true;
  note("the coordinator of term {} dies", c.id.term);
  c.is_proven = is_proven;
  if (!is_proven) return;
  for (std::size_t index = 0; index < coordinators_.size(); ++index) {
    if (coordinators_[index].get() != &c) continue;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].coordinator != index || !reaches(i, c.machine)) continue;
      after(random_.range(0, 30 * kMs), i, [this, i, index] {
        if (nodes_[i].coordinator == index) died_for(i, index);
      });
    }
  }
}

}  // namespace elastic::election
