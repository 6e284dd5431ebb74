#include "health/stacks/groups.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "src/base/json.h"
#include "src/base/json_archive.h"
#include "src/base/text.h"

namespace elastic::stacks {
namespace {

std::string key_of(const StackGroup& group) {
  std::string key = format("{} {} {}\n", static_cast<int>(group.of), group.is_cut, group.problem);
  for (const Frame& frame : group.frames) key += format("{}\n{}\n{}\n", frame.function, frame.file, frame.line);
  return key;
}

// Another node may say any number.
void add_count(int& count, int more) {
  constexpr int kMost = 1'000'000'000;
  count = more > kMost - count ? kMost : count + std::max(more, 0);
}

void add_waits(StackGroup& group, std::vector<std::string>& waits) {
  for (std::string& wait : waits) {
    if (group.waits.size() == kMostWaits) return;
    if (std::ranges::find(group.waits, wait) == group.waits.end()) group.waits.push_back(std::move(wait));
  }
}

// About what a member, and a group without its members, need in JSON.
std::size_t bytes_of(const Member& member) { return 64 + member.node.size(); }
std::size_t bytes_of(const StackGroup& group) {
  constexpr std::size_t kNames = 100;  // of a group's or a frame's members
  std::size_t bytes = kNames + group.problem.size();
  for (const Frame& frame : group.frames) bytes += kNames + frame.function.size() + frame.file.size();
  for (const std::string& wait : group.waits) bytes += wait.size();
  return bytes;
}

void add_process(const ProcessLook& process, int rank, bool is_child, std::vector<StackGroup>& out) {
  for (std::size_t i = 0; i < process.threads.size(); ++i) {
    const ThreadLook& thread = process.threads[i];
    const StackOf of = is_child ? StackOf::kChild : i == 0 ? StackOf::kWorker : StackOf::kThread;
    StackGroup group{.of = of, .frames = thread.frames, .is_cut = thread.is_cut, .torn = thread.is_torn ? 1 : 0};
    if (thread.frames.empty()) {
      group.problem = !process.problem.empty() ? process.problem : "it is in no function of Python";
    }
    group.members.push_back({.rank = rank, .pid = process.pid, .thread = thread.id});
    if (!thread.wait.empty()) group.waits.push_back(thread.wait);
    out.push_back(std::move(group));
  }
}

// The odd ones first.
void put_in_order(std::vector<StackGroup>& groups) {
  for (StackGroup& group : groups) std::ranges::sort(group.members);
  std::ranges::sort(groups, [](const StackGroup& a, const StackGroup& b) {
    const auto order = [](const StackGroup& group) { return std::tuple(group.of, group.members.size()); };
    return order(a) != order(b) ? order(a) < order(b) : a.members < b.members;
  });
}

void keep_newest(StackGroup& group, std::size_t count) {
  if (group.frames.size() <= count) return;
  group.frames.resize(count);
  group.is_cut = true;
}

}  // namespace

Groups grouped(const std::vector<RankLook>& looks) {
  Groups found;
  for (const RankLook& look : looks) {
    add_process(look.process, look.rank, false, found.groups);
    for (const ProcessLook& child : look.children) add_process(child, look.rank, true, found.groups);
    found.more_children += look.more_children;
  }
  Gathering gathering(SIZE_MAX);
  gathering.add(std::move(found), "");
  return gathering.take_groups();
}

void Gathering::add(Groups of_node, const std::string& node) {
  for (StackGroup& group : of_node.groups) {
    for (Member& member : group.members) member.node = node;
    add(std::move(group));
  }
  add_count(all_.left_out, of_node.left_out);
  add_count(all_.more_children, of_node.more_children);
  add_count(all_.more_members, of_node.more_members);
}

bool Gathering::has_room(std::size_t bytes) {
  if (bytes > left_bytes_) return false;
  left_bytes_ -= bytes;
  return true;
}

void Gathering::add(StackGroup group) {
  std::string key = key_of(group);
  auto place = places_.find(key);
  if (place == places_.end()) {
    if (!has_room(bytes_of(group))) {
      return add_count(all_.left_out, 1);
    }
    place = places_.emplace(std::move(key), all_.groups.size()).first;
    StackGroup fresh = group;
    fresh.members.clear();
    fresh.torn = 0;
    all_.groups.push_back(std::move(fresh));
  }
  StackGroup& known = all_.groups[place->second];
  for (Member& member : group.members) {
    if (has_room(bytes_of(member))) {
      known.members.push_back(std::move(member));
    } else {
      add_count(all_.more_members, 1);
    }
  }
  add_waits(known, group.waits);
  add_count(known.torn, group.torn);
}

Groups Gathering::take_groups() {
  put_in_order(all_.groups);
  places_.clear();
  return std::exchange(all_, {});
}

std::string text_of(Groups groups, std::size_t most_bytes) {
  const auto text = [&groups] { return write_json(groups, JsonForm::kPlain).dump(); };
  std::string all = text();
  for (std::size_t frames = 32; all.size() > most_bytes && frames >= 4; frames /= 2) {
    for (StackGroup& group : groups.groups) keep_newest(group, frames);
    all = text();
  }
  std::size_t bytes = all.size();
  while (bytes > most_bytes && !groups.groups.empty()) {
    // With the comma; the number of groups that are left out grows meanwhile.
    const std::size_t of_last = write_json(groups.groups.back(), JsonForm::kPlain).dump().size() + 1;
    constexpr std::size_t kDigits = 10;
    bytes -= std::min(bytes, of_last);
    if (groups.left_out == 0) bytes += kDigits;
    add_count(groups.left_out, 1);
    groups.groups.pop_back();
  }
  if (bytes != all.size()) all = text();
  return all;
}

Groups read_groups(const std::string& text) {
  constexpr std::size_t kMostLevels = 8;
  constexpr std::size_t kMostMembers = 16;
  Groups groups;
  if (!json_over_bounds(text, kMostLevels, kMostMembers).empty()) return groups;
  const auto json = Json::parse(text, "stacks");
  if (json) static_cast<void>(read_json(*json, groups, JsonForm::kForgiving, kMostNameBytes));
  return groups;
}

}  // namespace elastic::stacks
