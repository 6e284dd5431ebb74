#include "health/hang_evidence/stack_facts.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/text.h"

namespace elastic::hang {
namespace {

// Of processes that wait for orders, whatever the worker does.
constexpr auto kHelpers = std::to_array<std::string_view>(
    {"multiprocessing/resource_tracker.py", "multiprocessing/forkserver.py", "torch/_inductor/compile_worker/"});

const std::vector<stacks::Frame>* frames_of(const stacks::ProcessLook& look) {
  return look.threads.empty() || look.threads.front().frames.empty() ? nullptr : &look.threads.front().frames;
}

bool is_helper(const std::vector<stacks::Frame>& frames) {
  return std::ranges::any_of(frames, [](const stacks::Frame& frame) {
    return std::ranges::any_of(kHelpers,
                               [&](std::string_view part) { return frame.file.find(part) != std::string::npos; });
  });
}

// Names that are cut end in three dots more.
constexpr std::size_t kCutNameBytes = bounds::kNameBytes - 3;

// The node's list of different stacks, while it grows.
class Stacks {
 public:
  explicit Stacks(std::vector<Stack>& list) : list_(list) {
    for (std::size_t i = 0; i < list_.size(); ++i) places_.emplace(key_of(list_[i]), static_cast<std::uint16_t>(i));
  }
  // Nothing where there is no room.
  std::optional<std::uint16_t> place_of(const std::vector<stacks::Frame>& frames) {
    Stack stack;
    for (const stacks::Frame& frame : frames) {
      if (stack.frames.size() == bounds::kFrames) break;
      stack.frames.push_back(
          {printable(frame.function, kCutNameBytes), printable(frame.file, kCutNameBytes), frame.line});
    }
    const std::string key = key_of(stack);
    if (const auto known = places_.find(key); known != places_.end()) return known->second;
    if (list_.size() == bounds::kStacks) return {};
    const auto place = static_cast<std::uint16_t>(list_.size());
    list_.push_back(std::move(stack));
    places_.emplace(key, place);
    return place;
  }

 private:
  static std::string key_of(const Stack& stack) {
    std::string key;
    for (const Frame& frame : stack.frames) key += format("{}\n{}\n{}\n", frame.function, frame.file, frame.line);
    return key;
  }

  std::vector<Stack>& list_;
  std::map<std::string, std::uint16_t> places_;
};

// What one look says of a worker.
struct Seen {
  std::optional<std::uint16_t> own = {};
  std::optional<std::uint16_t> child = {};
};

Seen seen_in(const stacks::RankLook& look, Stacks& stacks) {
  Seen seen;
  const std::vector<stacks::Frame>* own = frames_of(look.process);
  std::map<std::uint16_t, std::size_t> counts;
  std::vector<std::uint16_t> places;
  for (const stacks::ProcessLook& child : look.children) {
    const std::vector<stacks::Frame>* frames = frames_of(child);
    if (frames == nullptr || is_helper(*frames)) continue;
    if (own == nullptr) {
      own = frames;
      continue;
    }
    const auto place = stacks.place_of(*frames);
    if (!place) continue;
    ++counts[*place];
    places.push_back(*place);
  }
  if (own != nullptr) seen.own = stacks.place_of(*own);
  if (!places.empty()) {
    seen.child = *std::ranges::min_element(places, {}, [&](std::uint16_t place) { return counts[place]; });
  }
  return seen;
}

RankFacts& rank_of(NodeFacts& facts, int rank, std::int64_t pid) {
  const auto known = std::ranges::find(facts.ranks, rank, &RankFacts::rank);
  if (known != facts.ranks.end()) return *known;
  facts.ranks.push_back({.rank = rank, .pid = pid});
  return facts.ranks.back();
}

}  // namespace

void add_stacks(NodeFacts& facts, std::span<const stacks::RankLook> first, std::span<const stacks::RankLook> second) {
  Stacks stacks(facts.different_stacks);
  std::map<int, Seen> then;
  for (const stacks::RankLook& look : first) then[look.rank] = seen_in(look, stacks);
  const bool has_second = !second.empty();
  std::size_t had = 0;
  bool is_late = false;
  std::string why;
  const std::span<const stacks::RankLook> latest = has_second ? second : first;
  for (const stacks::RankLook& look : latest) {
    const Seen seen = has_second ? seen_in(look, stacks) : then[look.rank];
    RankFacts& rank = rank_of(facts, look.rank, look.process.pid);
    const Seen before = has_second ? then[look.rank] : Seen{};
    // Half of what was had is better than nothing: one look alone says where a rank stands, and not for how long.
    rank.stack = seen.own ? seen.own : before.own;
    rank.child_stack = seen.child ? seen.child : before.child;
    if (seen.own) rank.stack_then = before.own;
    if (rank.stack) {
      ++had;
      continue;
    }
    is_late = is_late || look.process.is_late;
    if (why.empty()) why = look.process.problem;
  }
  if (latest.empty()) {
    facts.stacks = {Source::kLate, "nothing was read in time"};
  } else if (had == latest.size()) {
    facts.stacks = {Source::kHad, {}};
  } else if (had > 0) {
    facts.stacks = {Source::kPartial,
                    format("of {} of {}: {}", latest.size() - had, counted(latest.size(), "rank"), why)};
  } else {
    facts.stacks = {is_late ? Source::kLate : Source::kRefused, why};
  }
  facts.stacks.why = printable(facts.stacks.why, bounds::kReasonBytes);
}

}  // namespace elastic::hang
