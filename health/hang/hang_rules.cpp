#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "health/hang/hang_judge.h"
#include "src/base/text.h"

// The rules of judge(), and their table at the end of this file.
namespace elastic::hang {
namespace {

using Found = std::optional<HangVerdict>;
using Rank = HangPicture::Rank;

// Ranks in a text.
constexpr std::size_t kRanksBytes = 200;
// Of ranks that do otherwise than all others, by rules that compare: one of so many, or a single one.
constexpr std::size_t kOutlierShare = 10;
// GPUs whose power is compared, at least; and what differs: by more than a third of the middle one, and 50 W.
constexpr std::size_t kGpusCompared = 3;
constexpr double kPowerShare = 1.0 / 3;
constexpr double kPowerWatts = 50;

// Waits that do not say which collective it is, and sends and receives, which differ between the ranks of a pipeline.
constexpr auto kNotTheSameForAll = std::to_array<std::string_view>(
    {"backward", "synchronize", "wait", "send", "recv", "isend", "irecv", "batch_isend_irecv", "send_object_list",
     "recv_object_list", "init_process_group", "new_group"});

std::string ranks_text(const RankRuns& ranks) {
  return format("{} {}", plural("rank", ranks.size()), ranks.text(kRanksBytes));
}

std::string in_operation(std::string_view operation) {
  return operation.empty() ? "a collective" : printable(operation, bounds::kNameBytes);
}

// Facts that stand for themselves accuse one node, or fewer than half of them. What all have is no node's fault.
bool is_few(std::size_t accused, std::size_t nodes) { return accused == 1 || 2 * accused < nodes; }

HangVerdict blame_nodes(const HangPicture& picture, const std::vector<std::pair<std::size_t, std::string>>& nodes) {
  HangVerdict verdict{.fault = Fault::kHard};
  std::vector<RankRuns> odd;
  for (const auto& [node, why] : nodes) {
    verdict.culprits.push_back({.node = picture.nodes()[node].name, .why = why});
    odd.push_back(picture.nodes()[node].own_ranks);
  }
  verdict.odd = united(odd);
  verdict.cause = format("node {}: {}", picture.nodes()[nodes.front().first].name, nodes.front().second);
  if (nodes.size() > 1) verdict.cause += format("; and {} like it", counted(nodes.size() - 1, "node"));
  return verdict;
}

// `why` makes the clause for a rank.
HangVerdict blame_ranks(const HangPicture& picture, const RankRuns& ranks, const auto& why) {
  HangVerdict verdict{.fault = Fault::kSoft, .odd = ranks};
  ranks.for_each([&](std::int32_t rank) {
    if (verdict.culprits.size() < bounds::kCulprits) {
      const Stack* stack = picture.rank(rank).stack;
      verdict.culprits.push_back({.rank = rank,
                                  .node = picture.node_name(rank),
                                  .why = why(rank),
                                  .place = stack == nullptr ? "" : own_place(*stack)});
    }
  });
  return verdict;
}

std::string where(const HangPicture& picture, const RankRuns& ranks) {
  return ranks.size() == 1 ? picture.rank_text(ranks.front()) : ranks_text(ranks);
}
std::string_view is_or_are(const RankRuns& ranks) { return ranks.size() == 1 ? "is" : "are"; }

// --- 1 ---

// Ranks that RAS misses, and whose threads do not say why.
bool all_missing(const HangPicture& picture, const NodeFacts& node) {
  if (picture.ras() == nullptr || node.own_ranks.empty() || !picture.ras()->missing.includes(node.own_ranks))
    return false;
  bool is_explained = false;
  node.own_ranks.for_each([&](std::int32_t rank) {
    const Rank& known = picture.rank(rank);
    is_explained = is_explained || known.is(ThreadState::kStopped) || known.is(ThreadState::kDisk);
  });
  return !is_explained;
}

Found lost_node(const HangPicture& picture, const JudgeSettings&) {
  std::vector<std::pair<std::size_t, std::string>> lost, missing;
  for (std::size_t i = 0; i < picture.nodes().size(); ++i) {
    const NodeFacts& node = picture.nodes()[i];
    if (!node.lost.empty()) {
      lost.emplace_back(i, node.lost);
    } else if (all_missing(picture, node)) {
      missing.emplace_back(i, "NCCL does not reach any of its ranks");
    }
  }
  if (!lost.empty() && 2 * lost.size() <= picture.nodes().size()) return blame_nodes(picture, lost);
  if (!lost.empty()) {
    return HangVerdict{.cause = format("{} of {} are lost, which is most of them: it may be this side that is cut off",
                                       lost.size(), counted(picture.nodes().size(), "node")),
                       .remedy = "look at the network between the nodes"};
  }
  // One node has asked RAS. If half of the nodes are missing, it may be on the side that is cut off.
  if (!missing.empty() && 2 * missing.size() < picture.nodes().size()) return blame_nodes(picture, missing);
  return {};
}

// --- 2 ---

bool is_at_storage(const Rank& rank) {
  return rank.is_in(Doing::kStorage) || (rank.is(ThreadState::kDisk) && is_network_storage(rank.facts->wchan));
}

Found storage(const HangPicture& picture, const JudgeSettings&) {
  const RankRuns ranks = picture.ranks_where(is_at_storage);
  std::vector<std::size_t> nodes = picture.nodes_of(ranks);
  std::set<std::size_t> all(nodes.begin(), nodes.end());
  for (std::size_t i = 0; i < picture.nodes().size(); ++i) {
    if (picture.nodes()[i].storage_hangs) all.insert(i);
  }
  const std::size_t known = picture.ranks().size() - picture.without_facts().size();
  const bool is_everywhere = !ranks.empty() && ranks.size() == known;
  const RankRuns waiting = picture.ranks_where([](const Rank& rank) { return rank.is_in(Doing::kCollective); });
  const bool is_rank_0 = ranks.size() == 1 && ranks.front() == 0 && !waiting.empty() && waiting.size() + 1 == known &&
                         2 * known >= picture.ranks().size();
  if (all.size() < 2 && !is_everywhere && !is_rank_0) return {};
  HangVerdict verdict{.remedy = "look at the file system that the job saves to and loads from", .odd = ranks};
  if (ranks.empty()) {
    verdict.cause = format("processes on {} wait for a network file system", counted(all.size(), "node"));
  } else {
    const Rank& first = picture.rank(ranks.front());
    const std::string at = first.stack == nullptr ? first.facts->wchan : innermost(*first.stack);
    verdict.cause = format("{} {} at storage, in {}", where(picture, ranks), is_or_are(ranks), at);
  }
  if (!waiting.empty()) {
    verdict.others = format("{} in {}", counted(waiting.size(), "rank"),
                            in_operation(picture.rank(waiting.front()).meaning.operation));
  }
  return verdict;
}

// --- 3 ---

bool cannot_be_interrupted(const Rank& rank, const JudgeSettings& settings) {
  return rank.is(ThreadState::kDisk) && rank.facts->state_ms >= settings.disk_wait_ms;
}

// The clause; empty: nothing is wrong.
std::string hardware_fault(const HangPicture& picture, const NodeFacts& node, const JudgeSettings& settings) {
  if (node.xid) return format("its GPU or driver has reported Xid {}", *node.xid);
  if (node.nvml.state == Source::kLost) return "a GPU has gone";
  if (node.nvml.state == Source::kLate) return "its GPU driver does not answer";
  std::string why;
  node.own_ranks.for_each([&](std::int32_t rank) {
    const Rank& known = picture.rank(rank);
    if (!why.empty() || !cannot_be_interrupted(known, settings)) return;
    // The storage may stand for ranks of which nothing is known, too.
    if (is_network_storage(known.facts->wchan) && !picture.without_facts().empty()) return;
    why = format("rank {} cannot be interrupted (state D) since {} s", rank, known.facts->state_ms / 1000);
    if (!known.facts->wchan.empty()) why += ", in " + known.facts->wchan;
  });
  return why;
}

Found hardware(const HangPicture& picture, const JudgeSettings& settings) {
  std::vector<std::pair<std::size_t, std::string>> nodes;
  for (std::size_t i = 0; i < picture.nodes().size(); ++i) {
    std::string why = hardware_fault(picture, picture.nodes()[i], settings);
    if (!why.empty()) nodes.emplace_back(i, std::move(why));
  }
  if (nodes.empty() || !is_few(nodes.size(), picture.nodes().size())) return {};
  HangVerdict verdict = blame_nodes(picture, nodes);
  // The other ranks of their node only wait for them.
  RankRuns stuck = picture.ranks_where([&](const Rank& rank) { return cannot_be_interrupted(rank, settings); });
  if (!stuck.empty()) verdict.odd = std::move(stuck);
  return verdict;
}

// --- 4 ---

Found stopped(const HangPicture& picture, const JudgeSettings&) {
  const RankRuns ranks = picture.ranks_where([](const Rank& rank) { return rank.is(ThreadState::kStopped); });
  if (ranks.empty() || !is_few(picture.nodes_of(ranks).size(), picture.nodes().size())) return {};
  HangVerdict verdict = blame_ranks(picture, ranks, [](std::int32_t) { return "it is stopped (state T)"; });
  // Whoever is stopped may stand anywhere.
  for (HangCulprit& culprit : verdict.culprits) culprit.place.clear();
  verdict.cause =
      format("{} {} stopped (state T): a debugger, SIGSTOP or a freezer", where(picture, ranks), is_or_are(ranks));
  verdict.remedy = "continue it with SIGCONT";
  return verdict;
}

// --- 5 ---

// The key for which a rank waits in the store itself; empty: none that is known.
std::string key_awaited_by(const StoreFacts& store, std::int32_t rank) {
  const auto wait = std::ranges::find_if(store.waits, [&](const StoreWait& each) { return each.ranks.contains(rank); });
  return wait == store.waits.end() ? "" : wait->key;
}

Found not_at_init(const HangPicture& picture, const JudgeSettings&) {
  if (picture.store() == nullptr || picture.store()->waiting.empty()) return {};
  const RankRuns& waiting = picture.store()->waiting;
  RankRuns absent;
  picture.store()->absent.for_each([&](std::int32_t rank) {
    if (!waiting.contains(rank) && !picture.rank(rank).is(ThreadState::kGone)) absent.add(rank);
  });
  if (absent.empty()) return {};
  const std::string others =
      format("{} {} in the store for it", ranks_text(waiting), waiting.size() == 1 ? "waits" : "wait");
  if (absent.size() > 1 && 2 * absent.size() > picture.ranks().size()) {
    return HangVerdict{.cause = format("most ranks have not come to init_process_group: {}", ranks_text(absent)),
                       .others = others,
                       .odd = absent};
  }
  HangVerdict verdict = blame_ranks(picture, absent, [&](std::int32_t rank) {
    const std::string key = key_awaited_by(*picture.store(), rank);
    return "it has not come to init_process_group" +
           (key.empty() ? "" : format(", and waits in the store for the key {}", key));
  });
  verdict.cause =
      format("{} {} not come to init_process_group", where(picture, absent), absent.size() == 1 ? "has" : "have");
  verdict.others = others;
  return verdict;
}

// --- 6 ---

std::string side_text(const WaitWalk::Mismatch::Side& side) {
  return format("{} in {}", ranks_text(side.ranks), in_operation(side.operation));
}

Found script_by_groups(const WaitWalk& waits) {
  if (waits.mismatch) {
    const WaitWalk::Mismatch& mismatch = *waits.mismatch;
    const auto& first = mismatch.sides[0];
    const auto& second = mismatch.sides[1];
    HangVerdict verdict{.fault = Fault::kScript};
    const bool is_operation = first.operation != second.operation;
    verdict.cause = format("ranks are in different collectives: number {} of group \"{}\" is not the same for all",
                           mismatch.number, mismatch.group);
    if (!is_operation) verdict.cause += ": its sizes or types differ";
    verdict.others = format("{}; {}", side_text(first), side_text(mismatch.sides.back()));
    if (!mismatch.is_even) verdict.odd = first.ranks;
    return verdict;
  }
  if (waits.cycle.empty()) return {};
  return HangVerdict{.fault = Fault::kScript,
                     .cause = format("{} wait for each other: they call their collectives in different orders",
                                     ranks_text(waits.cycle)),
                     .odd = waits.cycle};
}

Found different_collectives(const HangPicture& picture, const JudgeSettings&) {
  if (Found found = script_by_groups(picture.waits())) {
    found->remedy =
        "look for a branch that not all ranks take; TORCH_DISTRIBUTED_DEBUG=DETAIL names it where it happens";
    return found;
  }
  // By stacks all ranks must be seen: the one that is not could be the one that all others wait for.
  if (picture.waits().has_facts || picture.known_stacks() != picture.ranks().size()) return {};
  std::map<std::string, RankRuns> operations;
  for (std::size_t i = 0; i < picture.ranks().size(); ++i) {
    const Rank& rank = picture.ranks()[i];
    if (!rank.is_in(Doing::kCollective)) return {};
    if (std::ranges::find(kNotTheSameForAll, rank.meaning.operation) != kNotTheSameForAll.end()) return {};
    operations[rank.meaning.operation].add(static_cast<std::int32_t>(i));
  }
  if (operations.size() < 2) return {};
  std::vector<std::pair<std::string, RankRuns>> sides(operations.begin(), operations.end());
  std::ranges::sort(sides, {}, [](const auto& side) { return side.second.size(); });
  HangVerdict verdict{.fault = Fault::kScript, .cause = "all ranks are in collectives, but not in the same one"};
  std::vector<std::string> texts;
  for (const auto& [operation, ranks] : sides) texts.push_back(format("{} in {}", ranks_text(ranks), operation));
  verdict.others = some_of(texts);
  if (sides[0].second.size() < sides[1].second.size()) verdict.odd = sides[0].second;
  verdict.remedy =
      "look for a branch that not all ranks take; TORCH_DISTRIBUTED_DEBUG=DETAIL names it where it happens";
  return verdict;
}

// --- 7 ---

// Few enough to be blamed for what all others wait for: one, a tenth, or those of one node that are fewer than half.
bool is_minority(const HangPicture& picture, const RankRuns& ranks) {
  const std::size_t world = picture.ranks().size();
  if (ranks.size() <= std::max<std::size_t>(1, world / kOutlierShare)) return true;
  return picture.nodes_of(ranks).size() == 1 && 2 * ranks.size() < world;
}

std::string stack_clause(const Rank& rank) {
  if (rank.stack == nullptr) return {};
  std::string clause = format(", and is in {}", innermost(*rank.stack));
  if (rank.child_stack != nullptr) clause += format(" (a child of it in {})", innermost(*rank.child_stack));
  return clause;
}

// Its stack was lost, though stacks can be read on its node: it could say that the rank waits.
bool has_lost_stack(const HangPicture& picture, const Rank& rank) {
  if (rank.stack != nullptr || rank.node >= picture.nodes().size()) return false;
  const Source stacks = picture.nodes()[rank.node].stacks.state;
  return stacks != Source::kNotAsked && stacks != Source::kRefused;
}

Found behind(const HangPicture& picture, const JudgeSettings&) {
  std::map<std::int32_t, const WaitWalk::Behind*> all;
  for (const WaitWalk::Culprit& culprit : picture.waits().culprits) {
    // It waits, too, where nobody has counted: in a group without a recorder, or for a message.
    if (has_lost_stack(picture, picture.rank(culprit.rank))) continue;
    if (!picture.rank(culprit.rank).is_in(Doing::kCollective)) all.emplace(culprit.rank, &culprit.behind);
  }
  RankRuns ranks;
  for (const auto& [rank, why] : all) ranks.add(rank);
  if (ranks.empty() || !is_minority(picture, ranks)) return {};
  HangVerdict verdict = blame_ranks(picture, ranks, [&](std::int32_t rank) {
    const WaitWalk::Behind& why = *all.at(rank);
    return format("it has launched {} collectives of group \"{}\", and others wait in number {}", why.reached,
                  why.group, why.number) +
           stack_clause(picture.rank(rank));
  });
  const WaitWalk::Behind& first = *all.begin()->second;
  verdict.cause = format("{} {} not in the collective that others wait in", where(picture, ranks), is_or_are(ranks));
  verdict.others =
      format("{} in {} number {} of group \"{}\"; {} has launched {}", counted(first.waiting.size(), "rank"),
             in_operation(first.operation), first.number, first.group, format("rank {}", ranks.front()), first.reached);
  return verdict;
}

// --- 8 ---

Found outlier(const HangPicture& picture, const JudgeSettings&) {
  const RankRuns waiting = picture.ranks_where([](const Rank& rank) { return rank.is_in(Doing::kCollective); });
  const RankRuns outliers =
      picture.ranks_where([](const Rank& rank) { return rank.is_in(Doing::kElse) || rank.is_in(Doing::kStorage); });
  const std::size_t known = picture.known_stacks();
  // Who has launched everything is not behind, whatever line it stands at.
  if (outliers.meets(picture.waits().stuck_members)) return {};
  // More than half of all ranks must be seen to wait: those that are not seen may be with the outliers.
  if (outliers.empty() || 2 * waiting.size() <= picture.ranks().size()) return {};
  if (outliers.size() > std::max<std::size_t>(1, known / kOutlierShare)) return {};
  // Several that stand at different places on different nodes: one of them may wait for the other in a way that no
  // word is known for.
  const auto is_like_first = [&](std::int32_t rank) {
    return *picture.rank(rank).stack == *picture.rank(outliers.front()).stack;
  };
  bool are_alike = true;
  bool is_storage = false;
  outliers.for_each([&](std::int32_t rank) {
    are_alike = are_alike && is_like_first(rank);
    is_storage = is_storage || picture.rank(rank).is_in(Doing::kStorage);
  });
  // The storage may stand for ranks that are not seen, too.
  if (is_storage && known != picture.ranks().size()) return {};
  if (!are_alike && picture.nodes_of(outliers).size() > 1) return {};
  const std::string operation = in_operation(picture.rank(waiting.front()).meaning.operation);
  HangVerdict verdict = blame_ranks(picture, outliers, [&](std::int32_t rank) {
    return "it is not in a collective, and others are" + stack_clause(picture.rank(rank));
  });
  verdict.cause =
      format("{} {} not in the collective that others wait in", where(picture, outliers), is_or_are(outliers));
  verdict.others = format("{} in {}", counted(waiting.size(), "rank"), operation);
  return verdict;
}

// --- 9 and 10 ---

// All ranks have launched the same, and no evidence is missing that could say otherwise: of every rank of the world
// something is known, for one of which nothing is known may be the one that others wait for.
bool have_all_launched(const HangPicture& picture) {
  const WaitWalk& waits = picture.waits();
  if (!waits.stuck.empty()) {
    return waits.culprits.empty() && waits.maybe.empty() && waits.maybe_more == 0 && waits.unseen.empty();
  }
  if (waits.has_facts || picture.ranks().empty() || picture.known_stacks() != picture.ranks().size()) return false;
  const std::string& operation = picture.ranks().front().meaning.operation;
  return std::ranges::all_of(picture.ranks(), [&](const Rank& rank) {
    return rank.is_in(Doing::kCollective) && rank.meaning.operation == operation;
  });
}

std::string launched_text(const HangPicture& picture) {
  const WaitWalk& waits = picture.waits();
  if (waits.stuck.empty())
    return format("all ranks are in {}", in_operation(picture.ranks().front().meaning.operation));
  return format("all members have launched {} number {}, which is not over", in_operation(waits.stuck_operation),
                waits.stuck_number);
}

Found odd_gpu(const HangPicture& picture, const JudgeSettings&) {
  if (!have_all_launched(picture) || picture.ranks().size() < kGpusCompared) return {};
  std::vector<double> watts;
  for (const Rank& rank : picture.ranks()) {
    if (rank.facts == nullptr || !rank.facts->gpu_watts) return {};
    // What is usual for one model is not for another.
    if (rank.facts->gpu_model != picture.ranks().front().facts->gpu_model) return {};
    watts.push_back(*rank.facts->gpu_watts);
  }
  std::vector<double> sorted = watts;
  std::ranges::sort(sorted);
  const double middle = sorted[sorted.size() / 2];
  RankRuns odd;
  for (std::size_t i = 0; i < watts.size(); ++i) {
    const double difference = std::abs(watts[i] - middle);
    // What is no number differs, too.
    if (!(difference <= std::max(kPowerWatts, middle * kPowerShare))) odd.add(static_cast<std::int32_t>(i));
  }
  if (odd.size() != 1) return {};
  const std::int32_t rank = odd.front();
  HangVerdict verdict = blame_ranks(picture, odd, [&](std::int32_t) {
    return format("its GPU takes {:.0f} W, and the others about {:.0f} W", watts[static_cast<std::size_t>(rank)],
                  middle);
  });
  verdict.fault = Fault::kHard;
  verdict.cause = format("the GPU of {} is unlike all others: {:.0f} W, and about {:.0f} W", picture.rank_text(rank),
                         watts[static_cast<std::size_t>(rank)], middle);
  verdict.others = launched_text(picture);
  return verdict;
}

// What nodes say of their ports: "port 1 of mlx5_0 of node gpu-2 is DOWN"; empty: nothing.
std::string links_to_look_at(const HangPicture& picture) {
  std::vector<std::string> texts;
  for (const NodeFacts& node : picture.nodes()) {
    for (const LinkFault& link : node.link_faults) {
      texts.push_back(format("{} of node {} {}", link.port, node.name, link.fault));
    }
  }
  return texts.empty() ? "" : some_of(texts);
}

Found fabric(const HangPicture& picture, const JudgeSettings&) {
  if (!have_all_launched(picture)) return {};
  HangVerdict verdict{
      .cause = "all ranks have launched the same, and nothing moves: the links between them may be at fault",
      .others = launched_text(picture),
      .remedy = "check the nodes and their links with --check-only --network-check"};
  if (const std::string links = links_to_look_at(picture); !links.empty()) {
    verdict.remedy = format("look at these links: {}; then {}", links, verdict.remedy);
  }
  return verdict;
}

// --- 11 ---

// "ranks 1-3 wait in the store for the key 0"; empty where no rank is known to wait there.
std::string store_waits_text(const HangPicture& picture) {
  if (picture.store() == nullptr) return {};
  std::vector<std::string> texts;
  for (const StoreWait& wait : picture.store()->waits) {
    if (wait.ranks.empty()) continue;
    texts.push_back(format("{} {} in the store for the key {}", ranks_text(wait.ranks),
                           wait.ranks.size() == 1 ? "waits" : "wait", wait.key));
  }
  return texts.empty() ? "" : some_of(texts);
}

Found unknown(const HangPicture& picture, const JudgeSettings&) {
  HangVerdict verdict{.cause = "it is not known which rank the others wait for"};
  const std::size_t missing = picture.without_facts().size();
  const WaitWalk& waits = picture.waits();
  if (!waits.maybe.empty()) {
    verdict.others = format("it may be {}, of which nothing is known", ranks_text(waits.maybe));
    verdict.odd = waits.maybe;
  } else if (missing > 0) {
    verdict.others = format("nothing is known of {} of {}", missing, counted(picture.ranks().size(), "rank"));
    verdict.odd = picture.without_facts();
  } else if (picture.known_stacks() < picture.ranks().size()) {
    verdict.others = format("there is no stack of {} of {}", picture.ranks().size() - picture.known_stacks(),
                            counted(picture.ranks().size(), "rank"));
  }
  if (verdict.others.empty()) verdict.others = store_waits_text(picture);
  verdict.remedy = "compare the groups of ranks";
  return verdict;
}

// tests/structure/test_hang_rules.py holds docs/hangs.md to this table.
constexpr HangRule kRules[] = {
    {1, "node lost", "a node's session is lost or its lease over, or NCCL RAS reaches none of its ranks",
     "that node, hard", "a partition, a dead host", lost_node},
    {2, "storage",
     "ranks on two nodes or more save, load or wait for a network file system; or all do; or rank 0 does, and all "
     "others are in a collective",
     "nobody; four times the limit must pass", "the storage of checkpoints stands", storage},
    {3, "hardware",
     "on one node, or on fewer than half: a worker in state D for 10 s, a GPU driver that does not answer, an Xid, a "
     "GPU that has gone",
     "that node, hard", "a storage client, a driver, a GPU that fell off the bus", hardware},
    {4, "stopped", "a worker is stopped (state T)", "its node, soft", "a debugger, a freezer", stopped},
    {5, "not at init", "others wait in the store for the key of a rank that has not come", "its node, soft",
     "a rank that hangs before init_process_group", not_at_init},
    {6, "mismatch",
     "the same collective by number with another operation, size or type; ranks that wait for each other; all ranks "
     "are in collectives, but in different ones",
     "the script", "a branch that not all ranks take", different_collectives},
    {7, "behind", "by the flight recorder or RAS a rank is behind the others in a group, and waits for nobody",
     "its node, soft", "a data loader, a dead-lock, another branch", behind},
    {8, "outlier", "by stacks most ranks are in collectives, and one, or up to a tenth, is not", "its node, soft",
     "the same with gloo", outlier},
    {9, "odd GPU", "all have launched the same, nothing moves, and one GPU's power is unlike all others",
     "its node, hard", "a kernel that hangs on one GPU", odd_gpu},
    {10, "all launched", "all have launched the same, and nothing moves", "nobody; the links are to be checked",
     "the fabric", fabric},
    {11, "unknown", "otherwise", "nobody; the groups of ranks are told",
     "evidence is missing, or halves face each other", unknown},
};

}  // namespace

std::span<const HangRule> hang_rules() { return kRules; }

}  // namespace elastic::hang
