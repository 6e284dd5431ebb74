#include "health/hang_evidence/evidence_part.h"

#include <doctest/doctest.h>

namespace elastic::hang {

TEST_CASE("each part adds what it knows, and leaves what others have said") {
  NodeFacts facts{.name = "gpu-1"};
  facts.ranks = {{.rank = 2, .pid = 17}};
  NodeFacts said;
  said.storage_hangs = true;
  said.ranks = {{.rank = 2,
                 .pid = 17,
                 .state = ThreadState::kDisk,
                 .state_ms = 5,
                 .wchan = "nfs_wait",
                 .cpu_percent = 0,
                 .reads_dump_key = true},
                {.rank = 3, .pid = 18, .state = ThreadState::kRuns}};
  add_part(facts, Part::kProcesses, said);
  NodeFacts recorded;
  recorded.groups = {{"0", RankRuns::all(4)}};
  recorded.group_facts = {{.ranks = RankRuns::of({2}), .enqueued = 4}};
  recorded.ranks = {{.rank = 2, .recorder = {Source::kHad}}};
  add_part(facts, Part::kRecorder, recorded);
  NodeFacts asked;
  asked.ras_source = {Source::kPartial, "text"};
  asked.ras.emplace().missing = RankRuns::of({1});
  add_part(facts, Part::kRas, asked);
  NodeFacts measured;
  measured.nvml = {Source::kHad};
  measured.xid = 79;
  measured.ranks = {{.rank = 3, .gpu_watts = 118.0, .gpu_model = 5}};
  add_part(facts, Part::kGpus, measured);
  NodeFacts looked_at;
  looked_at.links = {Source::kHad};
  looked_at.link_faults = {{"port 1 of mlx5_0", "is DOWN"}};
  add_part(facts, Part::kLinks, looked_at);
  CHECK(facts.name == "gpu-1");
  CHECK(facts.storage_hangs);
  REQUIRE(facts.ranks.size() == 2);
  CHECK(facts.ranks[0].state == ThreadState::kDisk);
  CHECK(facts.ranks[0].wchan == "nfs_wait");
  CHECK(facts.ranks[0].recorder.state == Source::kHad);
  CHECK(facts.ranks[0].reads_dump_key);
  CHECK(facts.ranks[1].rank == 3);
  CHECK(facts.ranks[1].gpu_watts == 118.0);
  CHECK(facts.ranks[1].gpu_model == 5);
  CHECK(facts.group_facts.size() == 1);
  CHECK(facts.ras->missing.text() == "1");
  CHECK(facts.ras_source.state == Source::kPartial);
  CHECK(facts.nvml.state == Source::kHad);
  CHECK(facts.xid == 79);
  CHECK(facts.links.state == Source::kHad);
  CHECK(facts.link_faults == looked_at.link_faults);
}

TEST_CASE(
    "a part that has said nothing is told with the reason, and a process of ours that is late accuses no driver") {
  NodeFacts facts;
  facts.ranks = {{.rank = 2}};
  const SourceFacts late{Source::kLate, "it was not read in time"};
  for (const Part part : {Part::kProcesses, Part::kRecorder, Part::kRas, Part::kGpus, Part::kLinks}) {
    add_missing(facts, part, late);
  }
  CHECK(facts.ranks[0].state == ThreadState::kUnknown);
  CHECK(facts.ranks[0].recorder == late);
  CHECK(facts.ras_source == late);
  CHECK(facts.links == late);
  CHECK(facts.nvml == SourceFacts{Source::kRefused, "it was not read in time"});
}

}  // namespace elastic::hang
