#include "health/evidence/ras_comparison.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::evidence {
namespace {

constexpr std::size_t kRanksBytes = 120;  // of a list of ranks in a line
constexpr std::int64_t kInProgress = 7;   // ncclInProgress

using Globals = std::map<RasProcess, int>;

// Of each collective what the rank that is farthest has launched.
RasCounts most_of(const std::vector<RasRank>& ranks) {
  RasCounts most{};
  for (const RasRank& rank : ranks) {
    for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], rank.launched[i]);
  }
  return most;
}

std::int64_t behind(const RasRank& rank, const RasCounts& most) {
  RasCounts missing{};
  for (std::size_t i = 0; i < most.size(); ++i) missing[i] = most[i] - std::max<std::int64_t>(rank.launched[i], 0);
  return launches_of(missing);
}

bool has_failed(const RasRank& rank) {
  const auto is_error = [](std::int64_t result) { return result != 0 && result != kInProgress; };
  return is_error(rank.init_state) || is_error(rank.async_error);
}

std::optional<int> global_of(const RasProcess& process, const Globals& globals) {
  const auto found = globals.find(process);
  return found != globals.end() ? std::optional(found->second) : std::nullopt;
}

bool is_ours(const RasCommunicator& communicator, const Globals& globals) {
  const auto is_known = [&](const auto& rank) { return globals.contains(rank.process); };
  return std::ranges::any_of(communicator.ranks, is_known) || std::ranges::any_of(communicator.missing, is_known);
}

void compare_ranks(const RasCommunicator& before, const RasCommunicator& now, const Globals& globals,
                   RasCommunicatorState& state) {
  std::unordered_map<int, const RasRank*> earlier;
  for (const RasRank& rank : before.ranks) earlier.emplace(rank.rank, &rank);
  const RasCounts most_before = most_of(before.ranks);
  const RasCounts most = most_of(now.ranks);
  for (const RasRank& rank : now.ranks) {
    const auto known = earlier.find(rank.rank);
    if (known == earlier.end()) continue;
    if (known->second->launched != rank.launched) {
      state.moved = true;
      continue;
    }
    const std::int64_t missing = behind(rank, most);
    if (missing == 0 || behind(*known->second, most_before) == 0) continue;
    state.laggards.push_back({rank.rank, global_of(rank.process, globals), rank.process, missing});
  }
}

// Of the text form: whoever is named with fewer operations of a collective than others, in both reports.
void compare_texts(const RasCommunicator& before, const RasCommunicator& now, RasCommunicatorState& state) {
  if (before.launched != now.launched) return;
  state.differs = now.launched;
  std::map<std::string_view, std::int64_t> most;
  for (const RasLaunched& launched : now.launched) {
    std::int64_t& operations = most[launched.collective];
    operations = std::max(operations, launched.operations);
  }
  for (const RasLaunched& launched : now.launched) {
    const std::int64_t missing = most[launched.collective] - launched.operations;
    if (missing == 0) continue;
    for (const int rank : launched.named) state.laggards.push_back({.rank = rank, .behind = missing});
  }
}

RasCommunicatorState state_of(const RasCommunicator* before, const RasCommunicator& now, const Globals& globals) {
  RasCommunicatorState state{.hash = now.hash,
                             .size = now.size,
                             .had_before = before != nullptr,
                             .missing = now.missing,
                             .missing_ranks = now.missing_ranks,
                             .has_error = now.has_error};
  for (const RasRank& rank : now.ranks) {
    state.launched = std::max(state.launched, launches_of(rank.launched));
    if (has_failed(rank)) state.failed.push_back(rank.rank);
  }
  if (before == nullptr) {
    state.moved = true;
  } else {
    compare_ranks(*before, now, globals, state);
    compare_texts(*before, now, state);
  }
  return state;
}

// --- For people

std::string shortened(std::string text) {
  if (text.size() <= kRanksBytes) return text;
  return text.substr(0, text.rfind(',', kRanksBytes)) + ", ...";
}

// "rank 5", "ranks 0-4, 7", "ranks 0-3 of communicator 0x1f": global ranks where all are known.
std::string ranks_text(const std::vector<int>& in_communicator, const std::vector<int>& global,
                       const std::string& hash) {
  const bool all_known = in_communicator.size() == global.size();
  const std::vector<int>& shown = all_known ? global : in_communicator;
  std::string text = format("{} {}", plural("rank", shown.size()), shortened(rank_ranges(shown)));
  if (!all_known) text += " of communicator " + hash;
  return text;
}

// The hosts of processes, each once.
std::string hosts_text(std::vector<std::string> hosts) {
  std::ranges::sort(hosts);
  hosts.erase(std::ranges::unique(hosts).begin(), hosts.end());
  std::erase(hosts, "");
  return hosts.empty() ? "" : format(" on {} {}", plural("host", hosts.size()), some_of(hosts));
}

std::string laggards_line(const RasCommunicatorState& state) {
  std::vector<int> ranks;
  std::vector<int> global;
  std::vector<std::string> hosts;
  std::int64_t least = INT64_MAX;
  std::int64_t most = 0;
  for (const RasLaggard& laggard : state.laggards) {
    ranks.push_back(laggard.rank);
    if (laggard.global_rank) global.push_back(*laggard.global_rank);
    hosts.push_back(laggard.process.host);
    least = std::min(least, laggard.behind);
    most = std::max(most, laggard.behind);
  }
  const std::string launches = least == most ? counted(most, "launch") : format("{} to {} launch", least, most);
  return format("{}{} {} behind the others by {}{}", ranks_text(ranks, global, state.hash),
                hosts_text(std::move(hosts)), ranks.size() == 1 ? "stays" : "stay", launches, most == 1 ? "" : "es");
}

std::string missing_line(const RasCommunicatorState& state) {
  std::vector<int> ranks;
  std::vector<std::string> hosts;
  std::size_t dead = 0;
  for (const RasMissingRank& rank : state.missing) {
    ranks.push_back(rank.rank);
    hosts.push_back(rank.process.host);
    if (rank.is_dead) ++dead;
  }
  const std::string who = ranks.empty()
                              ? format("{} of communicator {}", counted(state.missing_ranks, "rank"), state.hash)
                              : ranks_text(ranks, {}, state.hash);
  return format("{}{} {} missing{}", who, hosts_text(std::move(hosts)), state.missing_ranks == 1 ? "is" : "are",
                dead > 0 ? format(" ({} taken for dead)", dead) : "");
}

// "communicator 27a0 in both reports: 26 ranks AllReduce 6650; 6 ranks AllReduce 6649".
std::string differs_line(const RasCommunicatorState& state) {
  std::vector<std::string> parts;
  for (const RasLaunched& launched : state.differs) {
    parts.push_back(format("{} {} {}", counted(launched.ranks, "rank"),
                           launched.collective.empty() ? "operation" : launched.collective, launched.operations));
  }
  return format("communicator {} in both reports: {}", state.hash, some_of(parts));
}

std::string processes_line(const std::vector<RasProcess>& processes, std::string_view what) {
  std::vector<std::string> names;
  for (const RasProcess& process : processes) names.push_back(format("process {} on {}", process.pid, process.host));
  return format("{}: {}", what, some_of(names));
}

std::string first_line(const RasComparison& comparison) {
  std::string line = format("NCCL {}: ", comparison.nccl_version);
  if (!comparison.has_counts) {
    return line + "its RAS does not tell what each rank has launched (NCCL 2.28.7 and later do)";
  }
  line += format("{}, ", counted(comparison.communicators.size(), "communicator"));
  const auto stood = std::ranges::count_if(comparison.communicators, [](const auto& state) { return !state.moved; });
  if (comparison.communicators.empty()) return line + "none of this job";
  if (stood == 0) return line + "all move";
  return line + (comparison.moved ? format("{} of them without a launch between two reports", stood)
                                  : "no launch between two reports");
}

}  // namespace

std::int64_t launches_of(const RasCounts& counts) {
  std::int64_t total = 0;
  for (const std::int64_t count : counts) {
    if (__builtin_add_overflow(total, std::max<std::int64_t>(count, 0), &total)) return INT64_MAX;
  }
  return total;
}

RasComparison compare_ras(const RasReport& first, const RasReport& second, std::span<const RasWorker> ours) {
  Globals globals;
  for (const RasWorker& worker : ours) globals.emplace(worker.process, worker.global_rank);
  std::unordered_map<std::string_view, const RasCommunicator*> before;
  for (const RasCommunicator& communicator : first.communicators) before.emplace(communicator.hash, &communicator);

  RasComparison comparison{.nccl_version = second.nccl_version,
                           .has_counts = first.has_counts && second.has_counts,
                           .silent = second.silent,
                           .dead = second.dead,
                           .is_partial = second.is_cut || second.timeouts > 0 || second.left_out > 0};
  for (const RasCommunicator& communicator : second.communicators) {
    if (second.has_counts && !globals.empty() && !is_ours(communicator, globals)) {
      ++comparison.foreign;
      continue;
    }
    const auto known = before.find(communicator.hash);
    RasCommunicatorState state = state_of(known != before.end() ? known->second : nullptr, communicator, globals);
    if (!comparison.has_counts) state.moved = false;
    comparison.moved |= state.moved;
    comparison.communicators.push_back(std::move(state));
  }
  return comparison;
}

std::vector<std::string> ras_summary(const RasComparison& comparison, std::size_t most_lines) {
  ELASTIC_CHECK(most_lines >= 2);
  std::vector<std::string> lines = {first_line(comparison)};
  if (!comparison.dead.empty()) lines.push_back(processes_line(comparison.dead, "taken for dead"));
  if (!comparison.silent.empty()) lines.push_back(processes_line(comparison.silent, "without an answer"));
  const auto add = [&](auto has, auto line_of) {
    for (const RasCommunicatorState& state : comparison.communicators) {
      if (has(state)) lines.push_back(line_of(state));
    }
  };
  const auto missing = [](const auto& state) { return state.missing_ranks > 0; };
  const auto failed = [](const auto& state) { return state.has_error || !state.failed.empty(); };
  const auto lags = [](const auto& state) { return !state.laggards.empty(); };
  const auto failed_line = [](const RasCommunicatorState& state) {
    if (state.failed.empty()) return format("communicator {} has an error of NCCL", state.hash);
    return format("{} with an error of NCCL", ranks_text(state.failed, {}, state.hash));
  };
  add(missing, missing_line);
  add(failed, failed_line);
  add(lags, laggards_line);
  // Where nobody is named, those who lag are the majority.
  add([](const auto& state) { return !state.differs.empty() && state.laggards.empty(); }, differs_line);
  if (comparison.foreign > 0) {
    lines.push_back(format("{} of another job {} ignored", counted(comparison.foreign, "communicator"),
                           comparison.foreign == 1 ? "is" : "are"));
  }
  if (comparison.is_partial) lines.emplace_back("the report is not complete: ranks that it does not have may be well");
  if (lines.size() > most_lines) {
    const std::size_t more = lines.size() - most_lines + 1;
    lines.resize(most_lines - 1);
    lines.push_back(format("and {} more", counted(more, "line")));
  }
  return lines;
}

}  // namespace elastic::evidence
