#include "health/hang_evidence/ras_facts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "src/base/text.h"

namespace elastic::hang {
namespace {

using evidence::RasCommunicator;
using evidence::RasMissingRank;
using evidence::RasProcess;
using evidence::RasRank;
using evidence::RasReport;

using Ranks = std::map<RasProcess, std::int32_t>;

// Adds what a communicator of all ranks says, if it numbers our own processes as the job does.
void learn(const RasCommunicator& communicator, std::int32_t world_size, const Ranks& ours, Ranks& all) {
  if (communicator.size != world_size) return;
  std::size_t agreeing = 0;
  bool disagrees = false;
  const auto look = [&](const auto& rank) {
    const auto own = ours.find(rank.process);
    if (own == ours.end()) return;
    ++agreeing;
    disagrees = disagrees || own->second != rank.rank;
  };
  std::ranges::for_each(communicator.ranks, look);
  std::ranges::for_each(communicator.missing, look);
  if (agreeing == 0 || disagrees) return;
  const auto add = [&](const auto& rank) {
    if (rank.process.pid > 0 && rank.rank >= 0 && rank.rank < world_size) all.emplace(rank.process, rank.rank);
  };
  std::ranges::for_each(communicator.ranks, add);
  std::ranges::for_each(communicator.missing, add);
}

std::optional<std::int32_t> rank_of(const RasProcess& process, const Ranks& all) {
  const auto found = all.find(process);
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

const RasCommunicator* find(const RasReport& report, const std::string& hash) {
  const auto found = std::ranges::find(report.communicators, hash, &RasCommunicator::hash);
  return found == report.communicators.end() ? nullptr : &*found;
}

bool is_away(const RasMissingRank& rank) { return rank.is_silent || rank.is_dead; }

class Facts {
 public:
  Facts(RasFacts& out, const Ranks& all) : out_(out), all_(all) {}

  void add(const RasCommunicator& before, const RasCommunicator& now) {
    const auto place = static_cast<std::uint32_t>(out_.groups.size());
    Group group{.name = now.hash,
                .digest = digest_of(now.hash),
                .size = static_cast<std::int32_t>(std::clamp<std::int64_t>(now.size, 0, INT32_MAX))};
    std::map<std::pair<std::int64_t, std::uint32_t>, std::vector<std::int32_t>> counts;
    std::map<int, const RasRank*> then;
    for (const RasRank& rank : before.ranks) then.emplace(rank.rank, &rank);
    std::vector<std::int32_t> members;
    for (const RasRank& rank : now.ranks) {
      const auto global = rank_of(rank.process, all_);
      if (!global) continue;
      members.push_back(*global);
      const auto known = then.find(rank.rank);
      if (known == then.end() || known->second->launched != rank.launched || rank.is_ending) continue;
      std::string text;
      for (const std::int64_t count : rank.launched) text += format("{} ", count);
      counts[{evidence::launches_of(rank.launched), digest_of(text)}].push_back(*global);
    }
    for (const RasMissingRank& rank : now.missing) {
      if (const auto global = rank_of(rank.process, all_)) members.push_back(*global);
    }
    group.members = RankRuns::of(std::move(members));
    out_.groups.push_back(std::move(group));
    for (auto& [count, ranks] : counts) {
      out_.counts.push_back(
          {.group = place, .ranks = RankRuns::of(std::move(ranks)), .enqueued = count.first, .digest = count.second});
    }
  }

 private:
  RasFacts& out_;
  const Ranks& all_;
};

// Ranks that are missing in a report.
std::set<std::int32_t> missing_in(const RasReport& report, const Ranks& all) {
  std::set<std::int32_t> ranks;
  const auto add = [&](const RasProcess& process) {
    if (const auto rank = rank_of(process, all)) ranks.insert(*rank);
  };
  for (const RasCommunicator& communicator : report.communicators) {
    for (const RasMissingRank& rank : communicator.missing) {
      if (is_away(rank)) add(rank.process);
    }
  }
  std::ranges::for_each(report.silent, add);
  std::ranges::for_each(report.dead, add);
  return ranks;
}

SourceFacts source_of(const RasReport& report) {
  if (!report.has_counts) {
    return {Source::kPartial,
            format("NCCL {} reports as text, without counts", printable(report.nccl_version, bounds::kNameBytes))};
  }
  if (report.is_cut) return {Source::kPartial, "its report is cut off"};
  if (report.timeouts > 0) return {Source::kPartial, "it has not reached all processes in time"};
  if (report.left_out > 0) return {Source::kPartial, "its report is not whole"};
  return {Source::kHad, {}};
}

}  // namespace

NodeFacts ras_facts_of(const RasReport& first, const RasReport& second, std::span<const evidence::RasWorker> ours,
                       std::int32_t world_size) {
  NodeFacts out;
  Ranks own;
  for (const evidence::RasWorker& worker : ours) own.emplace(worker.process, worker.global_rank);
  Ranks all = own;
  for (const RasReport* report : {&first, &second}) {
    for (const RasCommunicator& communicator : report->communicators) learn(communicator, world_size, own, all);
  }
  const auto is_known = [&](const auto& rank) { return all.contains(rank.process); };
  RasFacts facts;
  Facts adding(facts, all);
  bool is_ours = false;
  for (const RasCommunicator& now : second.communicators) {
    if (!std::ranges::any_of(now.ranks, is_known) && !std::ranges::any_of(now.missing, is_known)) continue;
    is_ours = true;
    const RasCommunicator* before = find(first, now.hash);
    if (before != nullptr && facts.groups.size() < bounds::kGroups) adding.add(*before, now);
  }
  const std::set<std::int32_t> then = missing_in(first, all);
  for (const std::int32_t rank : missing_in(second, all)) {
    if (then.contains(rank)) facts.missing.add(rank);
  }
  if (second.has_counts && !is_ours) {
    const bool is_empty = second.communicators.empty();
    out.ras_source = {Source::kRefused, is_empty ? "there are no communicators" : "what answers is another job's"};
    return out;
  }
  out.ras_source = source_of(second);
  out.ras = std::move(facts);
  return out;
}

}  // namespace elastic::hang
