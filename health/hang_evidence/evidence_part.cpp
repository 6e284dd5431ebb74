#include "health/hang_evidence/evidence_part.h"

#include <algorithm>
#include <map>

namespace elastic::hang {
namespace {

// The ranks of the facts by their numbers, as long as none is added.
class RanksOf {
 public:
  explicit RanksOf(NodeFacts& facts) : facts_(facts) {
    for (std::size_t i = 0; i < facts.ranks.size(); ++i) places_.emplace(facts.ranks[i].rank, i);
  }
  RankFacts& operator[](std::int32_t rank) {
    const auto [known, is_new] = places_.emplace(rank, facts_.ranks.size());
    if (is_new) facts_.ranks.push_back({.rank = rank});
    return facts_.ranks[known->second];
  }

 private:
  NodeFacts& facts_;
  std::map<std::int32_t, std::size_t> places_;
};

}  // namespace

void add_part(NodeFacts& facts, Part part, const NodeFacts& said) {
  RanksOf ranks(facts);
  switch (part) {
    case Part::kProcesses:
      facts.storage_hangs = said.storage_hangs;
      for (const RankFacts& rank : said.ranks) {
        RankFacts& known = ranks[rank.rank];
        known.pid = rank.pid;
        known.state = rank.state;
        known.state_ms = rank.state_ms;
        known.wchan = rank.wchan;
        known.cpu_percent = rank.cpu_percent;
        known.reads_dump_key = rank.reads_dump_key;
      }
      return;
    case Part::kRecorder:
    case Part::kDumps:
      facts.groups = said.groups;
      facts.group_facts = said.group_facts;
      for (const RankFacts& rank : said.ranks) ranks[rank.rank].recorder = rank.recorder;
      return;
    case Part::kRas:
      facts.ras_source = said.ras_source;
      facts.ras = said.ras;
      return;
    case Part::kGpus:
      facts.nvml = said.nvml;
      facts.xid = said.xid;
      for (const RankFacts& rank : said.ranks) {
        ranks[rank.rank].gpu_watts = rank.gpu_watts;
        ranks[rank.rank].gpu_model = rank.gpu_model;
      }
      return;
    case Part::kLinks:
      facts.links = said.links;
      facts.link_faults = said.link_faults;
      return;
    case Part::kStoreClients: return;  // EvidenceAnswer::clients are no facts of their own
  }
}

void add_missing(NodeFacts& facts, Part part, const SourceFacts& source) {
  switch (part) {
    case Part::kProcesses: return;  // a state that is not known says so
    case Part::kRecorder:
    case Part::kDumps:
      for (RankFacts& rank : facts.ranks) rank.recorder = source;
      return;
    case Part::kRas: facts.ras_source = source; return;
    case Part::kGpus:
      // A driver that does not answer accuses its node, a process of ours that does not must not.
      facts.nvml = {source.state == Source::kNotAsked ? Source::kNotAsked : Source::kRefused, source.why};
      return;
    case Part::kLinks: facts.links = source; return;
    case Part::kStoreClients: return;  // then it is not known who waits
  }
}

}  // namespace elastic::hang
