#include "health/stacks/document.h"

#include <algorithm>
#include <set>

#include "src/base/json_archive.h"
#include "src/base/text.h"

namespace elastic::stacks {
namespace {

constexpr const char* kMark = "elastic_run_stacks";
constexpr std::size_t kMembersNamed = 8;  // with their processes; of more only the ranks are named

std::vector<int> ranks_of(const StackGroup& group) {
  std::set<int> ranks;
  for (const Member& member : group.members) {
    if (member.rank >= 0) ranks.insert(member.rank);
  }
  return {ranks.begin(), ranks.end()};
}

std::string process_text(const Member& member, StackOf of) {
  std::string text = format("process {}", member.pid);
  if (of != StackOf::kWorker && member.thread != member.pid) text += format(", thread {}", member.thread);
  return member.node.empty() ? text : format("{} on {}", text, member.node);
}

// "rank 3 (process 4711 on node1)", "ranks 0-2, 4 (4 threads)".
std::string who(const StackGroup& group) {
  const std::vector<int> ranks = ranks_of(group);
  std::string text = ranks.empty() ? "" : format("{} {}", plural("rank", ranks.size()), rank_ranges(ranks));
  std::vector<std::string> places;
  for (const Member& member : group.members) places.push_back(process_text(member, group.of));
  if (places.size() > kMembersNamed) {
    const char* noun = group.of == StackOf::kWorker ? "process" : "thread";
    const std::string count = format("{} {}{}", places.size(), noun, group.of == StackOf::kWorker ? "es" : "s");
    return text.empty() ? count : format("{} ({})", text, count);
  }
  const std::string all = join(places, "; ");
  return text.empty() ? all : format("{} ({})", text, all);
}

std::string group_text(const StackGroup& group) {
  std::string text = who(group);
  if (!group.waits.empty()) text += ": " + join(group.waits, ", ");
  text += "\n";
  if (group.frames.empty()) text += format("    no stack of Python: {}\n", group.problem);
  for (const Frame& frame : group.frames) {
    const std::string line = frame.line > 0 ? format(":{}", frame.line) : "";
    text += format("    {}  {}{}\n", frame.function, frame.file, line);
  }
  if (group.is_cut) text += "    ... and older calls\n";
  if (group.torn > 0) {
    text += format("    (of {} of them this may be wrong, since it ran on while it was read)\n", group.torn);
  }
  return text;
}

std::string section(const std::vector<StackGroup>& groups, StackOf of, std::string_view title) {
  std::string text;
  for (const StackGroup& group : groups) {
    if (group.of == of) text += "\n" + group_text(group);
  }
  return text.empty() || title.empty() ? text : format("\n{}\n{}", title, text);
}

std::string head(const StacksDocument& document) {
  std::set<int> ranks;
  std::ptrdiff_t different = 0;
  for (const StackGroup& group : document.all.groups) {
    if (group.of != StackOf::kWorker) continue;
    ++different;
    for (const int rank : ranks_of(group)) ranks.insert(rank);
  }
  if (ranks.empty()) return {};
  std::string text = document.run_id.empty() ? "" : format("job {}: ", document.run_id);
  text += counted(ranks.size(), "worker");
  const auto told = std::ranges::count(document.nodes, std::string(), &NodeAnswer::problem);
  if (told > 0) text += format(" on {}", counted(told, "node"));
  return format("{}, {}{}\n", text, counted(different, "different stack"), different > 1 ? ", the rarest first" : "");
}

}  // namespace

Json json_of(const StacksDocument& document) {
  Json json = Json::object();
  json.set(kMark, 1);
  JsonWriter writer(json, JsonForm::kPlain);
  describe(writer, document);
  return json;
}

Result<StacksDocument> read_document(std::string_view text) {
  constexpr std::size_t kMostLevels = 8;
  constexpr std::size_t kMostMembers = 16;
  const auto refuse = [](std::string reason) { return fail("the stacks", std::move(reason), ""); };
  if (std::string over = json_over_bounds(text, kMostLevels, kMostMembers); !over.empty()) return refuse(over);
  const auto json = Json::parse(text, "the stacks");
  if (!json) return std::unexpected(json.error());
  if (json->find(kMark) == nullptr) return refuse("they are not elastic-run's");
  StacksDocument document;
  static_cast<void>(read_json(*json, document, JsonForm::kForgiving, kMostNameBytes));
  return document;
}

std::string page_of(const StacksDocument& document) {
  std::string text = head(document);
  text += section(document.all.groups, StackOf::kWorker, "");
  text += section(document.all.groups, StackOf::kThread, "Their other threads:");
  text += section(document.all.groups, StackOf::kChild, "Processes that they have started:");
  if (document.all.left_out > 0) {
    text += format("\n{} left out for lack of space.\n", counted(document.all.left_out, "more stack"));
  }
  if (document.all.more_members > 0) {
    text += format("\n{} with these stacks left out for lack of space.\n",
                   counted(document.all.more_members, "more thread"));
  }
  if (document.all.more_children > 0) {
    text += format("\n{} more processes that they have started were not looked at.\n", document.all.more_children);
  }
  std::string missing;
  for (const NodeAnswer& node : document.nodes) {
    if (!node.problem.empty()) missing += format("node {}: {}\n", node.name, node.problem);
  }
  if (!missing.empty()) text += "\n" + missing;
  if (!document.notes.empty()) text += "\n" + join(document.notes, "\n") + "\n";
  return text.starts_with('\n') ? text.substr(1) : text;
}

}  // namespace elastic::stacks
