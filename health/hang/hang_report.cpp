#include "health/hang/hang_report.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "health/hang/bounds.h"
#include "src/base/text.h"
#include "src/base/wall_time.h"

namespace elastic::hang {
namespace {

// On the screen: groups, frames of the odd ones, bytes of a list of ranks and of a line.
constexpr std::size_t kGroupsOnScreen = 8;
constexpr std::size_t kRanksBytes = 120;
constexpr std::size_t kLineBytes = 200;
// Of JSON's lists of ranks.
constexpr std::size_t kJsonRanksBytes = 4096;
constexpr std::size_t kFunctionColumns = 24;

std::string_view base_name(std::string_view file) { return file.substr(file.rfind('/') + 1); }

std::string_view name_of(auto value) { return names_of(value)[static_cast<std::size_t>(value)]; }

std::string ranks_text(const RankRuns& ranks) {
  return format("{} {}", plural("rank", ranks.size()), ranks.text(kRanksBytes));
}

std::string frame_lines(const Stack& stack, std::string_view indent) {
  std::string out;
  for (const Frame& frame : stack.frames) {
    const std::string function = printable(frame.function, kLineBytes);
    out += format("{}{:<{}} {}:{}\n", indent, function, kFunctionColumns, printable(base_name(frame.file), kLineBytes),
                  frame.line);
  }
  return out;
}

// "sleeping, hrtimer_nanosleep, 0 % CPU"
std::string state_text(const HangPicture& picture, const RankGroup& group) {
  constexpr std::array kWords = {"state unknown", "running", "sleeping", "in an uninterruptible wait (D)",
                                 "stopped (T)",   "gone"};
  std::string out = kWords[static_cast<std::size_t>(group.state)];
  if (!group.wchan.empty()) out += ", " + printable(group.wchan, kLineBytes);
  const RankFacts* facts = picture.rank(group.ranks.front()).facts;
  if (facts != nullptr && facts->cpu_percent >= 0) out += format(", {} % CPU", facts->cpu_percent);
  return out;
}

// "all_reduce   train.py:150": what the ranks are in, and the innermost line that is not the library's.
std::string place_text(const RankGroup& group) {
  if (group.stack == nullptr || group.stack->frames.empty()) return "no stack";
  if (group.operation.empty()) return innermost(*group.stack);
  const auto own = std::ranges::find_if(group.stack->frames, [](const Frame& frame) {
    return frame.file.find("/torch/") == std::string::npos && !frame.file.starts_with("torch/");
  });
  if (own == group.stack->frames.end()) return group.operation;
  return format("{}   {}:{}", group.operation, base_name(own->file), own->line);
}

std::string silence_text(std::int64_t silent_ms, const HangStory& story) {
  std::vector<std::string> parts;
  if (!story.section.empty()) {
    const std::string rank = story.section_rank < 0 ? "" : format(", in which rank {} is", story.section_rank);
    parts.push_back(format("limit of section \"{}\"{}: {}", printable(story.section, bounds::kNameBytes), rank,
                           span_text(story.limit.limit_ms)));
  }
  if (story.longest_gap_ms > 0) parts.push_back("longest gap before: " + span_text(story.longest_gap_ms));
  if (!story.last_line.empty()) {
    std::string last = format("last step line: \"{}\"", printable(trim(story.last_line), kLineBytes));
    if (story.last_rank >= 0) last += format(", rank {}", story.last_rank);
    parts.push_back(std::move(last));
  }
  return format("no progress for {}", span_text(silent_ms)) + (parts.empty() ? "" : " (" + join(parts, "; ") + ")");
}

// What could not be had, each once with how many nodes it concerns.
std::vector<std::string> missing_sources(const HangPicture& picture) {
  std::map<std::string, int> missing;
  const auto look = [&](std::string_view name, const SourceFacts& source) {
    if (source.state == Source::kHad || source.state == Source::kNotAsked) return;
    ++missing[format("{} {}{}", name, name_of(source.state), source.why.empty() ? "" : " (" + source.why + ")")];
  };
  for (const NodeFacts& node : picture.nodes()) {
    if (!node.has_answered) {
      ++missing["nothing in time"];
      continue;
    }
    look("stacks", node.stacks);
    look("RAS", node.ras_source);
    look("NVML", node.nvml);
    look("InfiniBand", node.links);
    look("store", node.store_source);
  }
  std::vector<std::string> texts;
  for (const auto& [text, nodes] : missing) texts.push_back(format("{} of {}", text, counted(nodes, "node")));
  return texts;
}

// The state of a source over all nodes: the worst one.
std::string source_state(const HangPicture& picture, SourceFacts NodeFacts::*source) {
  Source worst = Source::kNotAsked;
  for (const NodeFacts& node : picture.nodes()) {
    worst = std::max(worst, node.has_answered ? (node.*source).state : Source::kLate);
  }
  return std::string(name_of(worst));
}

std::string recorder_state(const HangPicture& picture) {
  Source worst = Source::kNotAsked;
  for (const HangPicture::Rank& rank : picture.ranks()) {
    if (rank.facts != nullptr) worst = std::max(worst, rank.facts->recorder.state);
  }
  return std::string(name_of(worst));
}

Json stack_json(const Stack* stack) {
  if (stack == nullptr) return {};
  Json frames = Json::array();
  for (const Frame& frame : stack->frames) {
    frames.push(Json::object()
                    .set("function", printable(frame.function, kLineBytes))
                    .set("file", printable(frame.file, bounds::kNameBytes))
                    .set("line", std::int64_t{frame.line}));
  }
  return frames;
}

Json group_json(const RankGroup& group) {
  Json json = Json::object();
  json.set("ranks", group.ranks.text(kJsonRanksBytes));
  json.set("count", static_cast<std::int64_t>(group.ranks.size()));
  json.set("odd", group.is_odd);
  json.set("state", name_of(group.state));
  json.set("wchan", group.wchan.empty() ? Json() : Json(group.wchan));
  json.set("op", group.operation.empty() ? Json() : Json(group.operation));
  json.set("seq", group.number == 0 ? Json() : Json(group.number));
  json.set("stack", stack_json(group.stack));
  json.set("child_stack", stack_json(group.child_stack));
  return json;
}

}  // namespace

std::vector<RankGroup> rank_groups(const HangPicture& picture, const HangVerdict& verdict) {
  // Of ranks that are in a collective the newest one that is not over.
  std::map<std::int32_t, std::int64_t> numbers;
  for (const NodeFacts& node : picture.nodes()) {
    for (const GroupFact& fact : node.group_facts) {
      if (fact.retired && *fact.retired < fact.enqueued)
        fact.ranks.for_each([&](std::int32_t rank) { numbers[rank] = fact.enqueued; });
    }
  }
  const auto text_of = [](const Stack* stack) {
    std::string text;
    if (stack == nullptr) return text;
    for (const Frame& frame : stack->frames) text += format("{}\n{}\n{}\n", frame.function, frame.file, frame.line);
    return text;
  };
  std::map<const Stack*, std::string> texts;  // the same stack of a node is made to a text once
  std::map<std::tuple<std::string, ThreadState, bool, bool>, std::size_t> places;
  std::vector<RankGroup> groups;
  for (std::size_t i = 0; i < picture.ranks().size(); ++i) {
    const auto number = static_cast<std::int32_t>(i);
    const HangPicture::Rank& rank = picture.ranks()[i];
    if (!texts.contains(rank.stack)) texts.emplace(rank.stack, text_of(rank.stack));
    const ThreadState state = rank.facts == nullptr ? ThreadState::kUnknown : rank.facts->state;
    const bool is_odd = verdict.odd.contains(number);
    const auto [place, is_new] =
        places.emplace(std::tuple(texts[rank.stack], state, is_odd, rank.facts != nullptr), groups.size());
    if (is_new) {
      groups.push_back({.state = state,
                        .wchan = rank.facts == nullptr ? "" : rank.facts->wchan,
                        .operation = rank.is_in(Doing::kCollective) ? rank.meaning.operation : "",
                        .stack = rank.stack,
                        .child_stack = rank.child_stack,
                        .is_odd = is_odd});
    }
    RankGroup& group = groups[place->second];
    group.ranks.add(number);
    // The number of one of them may not be known.
    if (const auto known = numbers.find(number); known != numbers.end() && group.number == 0)
      group.number = known->second;
  }
  std::ranges::sort(groups, {}, [](const RankGroup& group) {
    return std::tuple(!group.is_odd, group.ranks.size(), group.ranks.front());
  });
  return groups;
}

std::string hang_screen(const HangPicture& picture, const HangVerdict& verdict, const HangStory& story) {
  const std::vector<RankGroup> groups = rank_groups(picture, verdict);
  std::string out = silence_text(story.silent_ms, story) + "\n";
  out += format("  cause: {}\n", verdict.cause);
  if (!verdict.others.empty()) out += format("         others: {}\n", verdict.others);
  std::size_t shown = 0;
  std::size_t more = 0;
  for (const RankGroup& group : groups) {
    if (shown++ >= kGroupsOnScreen) {
      more += group.ranks.size();
      continue;
    }
    const bool is_known = picture.rank(group.ranks.front()).facts != nullptr;
    if (group.is_odd && is_known) {
      out += format("         {}: {}\n", ranks_text(group.ranks), state_text(picture, group));
      if (group.stack != nullptr) out += frame_lines(*group.stack, "           ");
      if (group.child_stack != nullptr)
        out += "         a child of it:\n" + frame_lines(*group.child_stack, "           ");
    } else if (!is_known) {
      out += format("  without evidence: {}\n", ranks_text(group.ranks));
    } else {
      out += format("  {}: {} in {}\n", verdict.culprits.empty() ? "group" : "not the cause", ranks_text(group.ranks),
                    place_text(group));
    }
  }
  if (more > 0)
    out += format("  and {} in {} more\n", counted(more, "rank"), counted(groups.size() - kGroupsOnScreen, "group"));
  if (!verdict.remedy.empty()) out += format("  remedy: {}\n", verdict.remedy);
  const std::vector<std::string> missing = missing_sources(picture);
  if (!missing.empty()) out += format("  not had: {}\n", join(missing, "; "));
  std::vector<std::string> ends;
  if (!story.evidence.empty()) ends.push_back("evidence: " + printable(story.evidence, 4096));
  if (!story.action.empty()) ends.push_back("action: " + printable(story.action, bounds::kReasonBytes));
  if (!ends.empty()) out += format("  {}\n", join(ends, "   "));
  return out;
}

Json hang_json(const HangPicture& picture, const HangVerdict& verdict, const HangStory& story,
               std::size_t most_groups) {
  Json hang = Json::object();
  hang.set("silent_s", static_cast<double>(story.silent_ms) / 1000);
  hang.set("limit_s", static_cast<double>(story.limit.limit_ms) / 1000);
  hang.set("limit_from", name_of(story.limit.from));
  hang.set("section", story.section.empty() ? Json() : Json(printable(story.section, bounds::kNameBytes)));
  hang.set("section_rank", story.section_rank < 0 ? Json() : Json(std::int64_t{story.section_rank}));
  hang.set("phase", name_of(story.phase));
  hang.set("longest_gap_s", static_cast<double>(story.longest_gap_ms) / 1000);
  hang.set("verdict", Json::object().set("rule", verdict.rule).set("name", verdict.name));
  hang.set("fault", name_of(verdict.fault));
  hang.set("cause", verdict.cause);
  hang.set("others", verdict.others.empty() ? Json() : Json(verdict.others));
  hang.set("remedy", verdict.remedy.empty() ? Json() : Json(verdict.remedy));
  Json culprits = Json::array();
  for (const HangCulprit& culprit : verdict.culprits) {
    Json json = Json::object();
    const RankFacts* facts = culprit.rank < 0 ? nullptr : picture.rank(culprit.rank).facts;
    json.set("rank", culprit.rank < 0 ? Json() : Json(std::int64_t{culprit.rank}));
    json.set("node", culprit.node);
    json.set("pid", facts == nullptr || facts->pid == 0 ? Json() : Json(facts->pid));
    json.set("why", culprit.why);
    culprits.push(std::move(json));
  }
  hang.set("culprits", std::move(culprits));
  const std::vector<RankGroup> groups = rank_groups(picture, verdict);
  Json list = Json::array();
  const std::size_t shown = std::min(groups.size(), most_groups);
  for (std::size_t i = 0; i < shown; ++i) list.push(group_json(groups[i]));
  hang.set("groups", std::move(list));
  hang.set("groups_left_out", static_cast<std::int64_t>(groups.size() - shown));
  hang.set("without_evidence", verdict.without_evidence.text(kJsonRanksBytes));
  hang.set("sources", Json::object()
                          .set("stacks", source_state(picture, &NodeFacts::stacks))
                          .set("ras", source_state(picture, &NodeFacts::ras_source))
                          .set("fr", recorder_state(picture))
                          .set("nvml", source_state(picture, &NodeFacts::nvml))
                          .set("links", source_state(picture, &NodeFacts::links))
                          .set("store", source_state(picture, &NodeFacts::store_source)));
  hang.set("last_line", story.last_line.empty() ? Json() : Json(printable(trim(story.last_line), kLineBytes)));
  hang.set("last_rank", story.last_rank < 0 ? Json() : Json(std::int64_t{story.last_rank}));
  hang.set("evidence", story.evidence.empty() ? Json() : Json(printable(story.evidence, 4096)));
  hang.set("action", story.action.empty() ? Json() : Json(printable(story.action, bounds::kReasonBytes)));
  return hang;
}

}  // namespace elastic::hang
