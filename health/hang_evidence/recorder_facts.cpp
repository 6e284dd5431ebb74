#include "health/hang_evidence/recorder_facts.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <tuple>
#include <utility>

#include "src/base/text.h"

namespace elastic::hang {
namespace {

using evidence::FlightFacts;
using evidence::FlightGroup;
using evidence::FlightOperation;

constexpr std::string_view kDefault = "default_pg";
// Members that are named though they are of other nodes: so many runs of them.
constexpr std::size_t kRunsNamed = 16;

// Why a dump says nothing about groups; empty: it does.
std::string unusable(const FlightFacts& dump) {
  if (dump.is_cut) return "its dump is cut off";
  if (dump.entries_left_out > 0) return format("of its dump {} entries cannot be used", dump.entries_left_out);
  return {};
}
std::string incomplete(const FlightFacts& dump) {
  if (dump.has_more_groups) return "it has more groups than are read";
  if (dump.oldest_record > 0) return "it has no older entries";
  return {};
}

// A group may have a backend for each kind of device, each of which counts by itself. That of NCCL is named by the
// group alone.
std::string name_of(const FlightGroup& known) {
  const std::string backend = known.newest && known.newest->backend != "nccl" ? known.newest->backend : "";
  std::vector<std::string> words;
  const bool is_described = !known.description.empty() && known.description != "undefined";
  if (is_described && known.description != kDefault) words.push_back(known.name);
  if (!backend.empty()) words.push_back(backend);
  const std::string& name = is_described ? known.description : known.name;
  return words.empty() ? name : format("{} ({})", name, join(words, ", "));
}

// A group as a dump of this rank has it. `own` are the ranks of this node.
Group group_of(const FlightGroup& known, std::int32_t rank, const RankRuns& own, std::int32_t world_size) {
  Group group{.name = name_of(known)};
  if (known.description == kDefault) {
    group.members = RankRuns::all(world_size);
    return group;
  }
  const RankRuns all = RankRuns::of({known.members.begin(), known.members.end()});
  // Members beyond the world are those of another job's numbers: nothing is known of them.
  if (all.empty() || !RankRuns::all(world_size).includes(all)) {
    group.members.add(rank);
    group.is_open = true;
    return group;
  }
  group.digest = digest_of(all.text());
  group.size = static_cast<std::int32_t>(all.size());
  if (all.runs.size() <= kRunsNamed) {
    group.members = all;
  } else {
    own.for_each([&](std::int32_t one) {
      if (all.contains(one)) group.members.add(one);
    });
  }
  return group;
}

// The partner of a send or receive that is not over; -1: there is one, and it is not known; nothing: there is none.
std::optional<std::int32_t> partner_of(const FlightGroup& group, std::int32_t world_size) {
  if (!group.newest || !group.newest->is_p2p || group.newest->is_over) return {};
  const auto peer = group.newest->peer.value_or(-1);
  if (peer < 0) return -1;
  if (!group.members.empty()) {
    return static_cast<std::size_t>(peer) < group.members.size() ? group.members[static_cast<std::size_t>(peer)] : -1;
  }
  return group.description == kDefault && peer < world_size ? peer : -1;
}

std::optional<GroupFact> collective_of(const FlightGroup& group, std::int64_t oldest_record) {
  if (!group.enqueued || *group.enqueued < 0) return {};
  GroupFact fact{.enqueued = *group.enqueued};
  // Without one that is over, in a ring that has dropped others, at least the newest one is not.
  const std::int64_t none_over = oldest_record > 0 ? *group.enqueued - 1 : 0;
  fact.retired = std::clamp<std::int64_t>(group.completed.value_or(none_over), 0, *group.enqueued);
  if (group.newest && !group.newest->is_p2p && group.newest->sequence == *group.enqueued) {
    const FlightOperation& newest = *group.newest;
    fact.operation = newest.name;
    fact.digest = digest_of(format("{:x} {}", newest.input_digest, newest.dtype));
  }
  return fact;
}

// The facts of a node's ranks, those that are equal together.
class Facts {
 public:
  Facts(NodeFacts& out, RankRuns own, std::int32_t world_size)
      : out_(out), own_(std::move(own)), world_size_(world_size) {}

  // Returns why it says nothing about groups; empty: it does.
  std::string add(std::int32_t rank, const FlightFacts& dump) {
    std::string why = unusable(dump);
    if (!why.empty()) return why;
    for (const FlightGroup& group : dump.groups) {
      if (partner_of(group, world_size_) == -1) return "it waits for a message, and its dump does not say from whom";
    }
    for (const FlightGroup& known : dump.groups) {
      const std::uint32_t group = place_of(group_of(known, rank, own_, world_size_));
      if (auto fact = collective_of(known, dump.oldest_record)) put(rank, group, *std::move(fact));
      const auto partner = partner_of(known, world_size_);
      if (!partner || *partner >= world_size_ || *partner == rank) continue;
      const std::int64_t number = std::max<std::int64_t>(known.newest->sequence, 1);
      put(rank, group,
          {.enqueued = number, .retired = number - 1, .operation = known.newest->name, .partner = *partner});
    }
    return {};
  }

 private:
  std::uint32_t place_of(Group group) {
    // Of an open group each rank names itself.
    const std::tuple key(group.name, group.digest, group.size, group.is_open);
    const auto [known, is_new] = groups_.emplace(key, static_cast<std::uint32_t>(out_.groups.size()));
    if (is_new) {
      out_.groups.push_back(std::move(group));
    } else {
      Group& all = out_.groups[known->second];
      all.members = united(all.members, group.members);
    }
    return known->second;
  }
  void put(std::int32_t rank, std::uint32_t group, GroupFact fact) {
    fact.group = group;
    const std::tuple key(group, fact.enqueued, *fact.retired, fact.operation, fact.digest, fact.partner);
    const auto [known, is_new] = facts_.emplace(key, out_.group_facts.size());
    if (is_new) out_.group_facts.push_back(std::move(fact));
    out_.group_facts[known->second].ranks.add(rank);
  }

  NodeFacts& out_;
  RankRuns own_;
  std::int32_t world_size_;
  std::map<std::tuple<std::string, std::uint32_t, std::int32_t, bool>, std::uint32_t> groups_;
  std::map<
      std::tuple<std::uint32_t, std::int64_t, std::int64_t, std::string, std::uint32_t, std::optional<std::int32_t>>,
      std::size_t>
      facts_;
};

// The value of the first of these that is set and not empty.
std::optional<std::string> first_of(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto value = lookup(environment, name);
    if (value && !value->empty()) return value;
  }
  return {};
}

}  // namespace

NodeFacts recorder_facts_of(std::span<const RankRecorder> recorders, std::int32_t world_size) {
  NodeFacts out;
  RankRuns own;
  for (const RankRecorder& recorder : recorders) own.add(recorder.rank);
  Facts facts(out, own, world_size);
  for (const RankRecorder& recorder : recorders) {
    RankFacts& rank = out.ranks.emplace_back();
    rank.rank = recorder.rank;
    if (!recorder.dump) {
      rank.recorder = recorder.why_not;
      continue;
    }
    std::string why = facts.add(recorder.rank, *recorder.dump);
    if (why.empty()) why = incomplete(*recorder.dump);
    rank.recorder = {why.empty() ? Source::kHad : Source::kPartial, why};
  }
  return out;
}

std::vector<std::string> recorder_lines(std::span<const RankRecorder> recorders) {
  std::vector<std::string> lines;
  for (const RankRecorder& recorder : recorders) {
    if (!recorder.dump) {
      if (recorder.why_not.state == Source::kNotAsked) continue;
      lines.push_back(format("rank {}: {}, {}", recorder.rank,
                             names_of(Source{})[static_cast<std::size_t>(recorder.why_not.state)],
                             recorder.why_not.why));
      continue;
    }
    std::vector<std::string> groups;
    for (const FlightGroup& group : recorder.dump->groups) {
      if (!group.newest) continue;
      groups.push_back(format("{} number {} of group \"{}\", {}", printable(group.newest->name, bounds::kNameBytes),
                              group.newest->sequence, printable(group.name, bounds::kNameBytes),
                              group.newest->is_over ? "over" : "not over"));
    }
    lines.push_back(format("rank {}: {}", recorder.rank, some_of(groups)));
  }
  return lines;
}

RecorderPlaces recorder_places(const Environment& environment) {
  RecorderPlaces places;
  places.pipe = first_of(environment, {"TORCH_FR_DEBUG_INFO_PIPE_FILE", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"});
  places.control = first_of(environment, {"TORCH_WORKER_SERVER_SOCKET"});
  for (const char* name : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
    if (const auto prefix = first_of(environment, {name})) places.files.push_back(*prefix);
  }
  if (!places.files.empty()) return places;
  const auto cache = first_of(environment, {"XDG_CACHE_HOME"});
  const auto home = first_of(environment, {"HOME"});
  if (cache || home) places.files.push_back((cache ? *cache : *home + "/.cache") + "/torch/comm_lib_trace_rank_");
  places.files.push_back("/tmp/nccl_trace_rank_");
  return places;
}

Environment environment_in(std::string_view text) {
  Environment environment = split(text, '\0');
  std::erase(environment, "");
  return environment;
}

}  // namespace elastic::hang
