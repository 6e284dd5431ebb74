#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "health/stacks/look.h"

namespace elastic::stacks {

// What a stack is one of.
enum class StackOf : std::uint8_t {
  kWorker,  // a worker's main thread
  kThread,  // another of its threads that Python knows
  kChild,   // a thread of a process that a worker has started
};
constexpr auto names_of(StackOf) { return std::array{"worker", "thread", "child"}; }

// One whose stack is that of a group.
struct Member {
  int rank = -1;
  std::int64_t pid = 0;
  std::int64_t thread = 0;
  std::string node = {};  // empty: of the node that tells it
  auto operator<=>(const Member&) const = default;

  static void fields(auto& io, auto& v) {
    io("rank", v.rank, Bounds{-1, INT32_MAX});
    each(io, "pid", v.pid, "thread", v.thread);
    io.if_set("node", v.node);
  }
};

// Equal stacks, or equal reasons why there is none.
struct StackGroup {
  StackOf of = StackOf::kWorker;
  std::vector<Frame> frames = {};  // the newest call first
  std::string problem = {};        // why there is no stack of Python, as a clause
  bool is_cut = false;
  std::vector<Member> members = {};     // by rank
  std::vector<std::string> waits = {};  // what they do, each once, kMostWaits at most
  int torn = 0;                         // of how many members the stack may be wrong, since they ran on

  static void fields(auto& io, auto& v) {
    io("of", v.of);
    io("frames", v.frames, at_most(kMostFrames));
    each(io, "problem", v.problem, "cut", v.is_cut);
    io("members", v.members);
    io("waits", v.waits, at_most(kMostWaits));
    io("torn", v.torn);
  }
};

// What one node, or a whole job, tells.
struct Groups {
  std::vector<StackGroup> groups = {};  // those with the fewest members first; workers, then threads, then children
  int left_out = 0;                     // groups that are not here for lack of space
  int more_children = 0;                // processes that were not looked at
  int more_members = 0;                 // members of these groups that are not here for lack of space

  static void fields(auto& io, auto& v) {
    io("groups", v.groups);
    each(io, "left_out", v.left_out, "more_children", v.more_children);
    io.if_set("more_members", v.more_members);
  }
};

// Groups what was seen, by equal stacks.
Groups grouped(const std::vector<RankLook>& looks);

// Puts together what the nodes of a job tell, one after the other, and keeps about so many bytes of it.
class Gathering {
 public:
  explicit Gathering(std::size_t most_bytes) : left_bytes_(most_bytes) {}

  // Adds what a node tells; its members get its name.
  void add(Groups of_node, const std::string& node);
  // All of it, the odd ones first.
  Groups take_groups();

 private:
  bool has_room(std::size_t bytes);
  void add(StackGroup group);

  std::size_t left_bytes_;
  Groups all_;
  std::map<std::string, std::size_t> places_;  // of groups, by their stacks
};

// As JSON of at most so many bytes: the oldest calls are left out first, then whole groups, the last
// ones first.
std::string text_of(Groups groups, std::size_t most_bytes);
// Reads the same; what is wrong is left out, and texts are made printable.
Groups read_groups(const std::string& text);

}  // namespace elastic::stacks
