// What a node reads of its workers: why they have failed, where they are, what they do.
#include <utility>

#include "health/stacks/groups.h"
#include "src/base/text.h"
#include "tests/simulation/node.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

// The node's files may be on a file system that is slow or hangs.
void Node::gather_details() {
  const agent::Event gathered = agent::DetailsGathered{format("details of agent {:x}", agent_id_)};
  if (random_.chance(50)) return on(gathered);
  if (random_.chance(80)) on_later(random_.range(0, 2500), gathered);
}

// There are few different crashes, so that some come twice in a row.
void Node::find_crash(protocol::RoundNumber round) {
  agent::CrashFound found{.round = round};
  if (random_.chance(85)) found.crash = {protocol::Crash::Kind::kImport, random_.chance(85) ? 1U : 2U};
  if (random_.chance(50)) return on(agent::Event{found});
  if (random_.chance(80)) on_later(random_.range(0, 1500), agent::Event{found});
}

// All workers wait at the same place. A reader may take its time.
void Node::collect_stacks(std::uint64_t collection) {
  stacks::StackGroup waiting{.frames = {{"all_reduce", "train.py", 150}}};
  const status::Node known = agent_->lifecycle().status();
  for (const status::Worker& worker : known.workers) {
    if (worker.running) waiting.members.push_back({.rank = worker.rank, .pid = worker.pid});
  }
  stacks::Groups groups;
  groups.groups.push_back(std::move(waiting));
  protocol::NodeStacks told{.collection = collection, .groups = stacks::text_of(groups, stacks::kMostBytesOfNode)};
  on_later(random_.chance(90) ? random_.range(0, 300) : random_.range(300, 20'000),
           agent::Event{agent::StacksCollected{std::move(told)}});
}

void Node::sees(agent::Event event) {
  process_.run(false, [this, event = std::move(event)] { on(event); });
}

// The evidence is as of some time between the order and the answer. Another order, or its end, ends the reading.
void Node::read_evidence(const protocol::CollectEvidence& order) {
  const Hangs::Reading plan = simulation_.hangs().plan_reading();
  const auto later = [this, mine = ++reading_, launch = process_.launch()](Ms after_ms, auto doing) {
    simulation_.timeline().after(after_ms, [this, mine, launch, doing = std::move(doing)]() mutable {
      if (launch != process_.launch()) return;
      process_.run(false, [this, mine, doing = std::move(doing)]() mutable {
        if (mine == reading_) doing();
      });
    });
  };
  later(plan.reads_ms, [this, later, order, plan] {
    hang::NodeFacts facts = simulation_.hangs().read(*this, order);
    if (!plan.sends_ms) return;
    later(*plan.sends_ms - plan.reads_ms, [this, order, facts = std::move(facts)] {
      on(agent::Event{agent::EvidenceRead{order.round, order.collection, facts}});
    });
  });
}

}  // namespace elastic::simulation
