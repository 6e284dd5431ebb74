#include "health/stacks/groups.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "src/base/text.h"

using namespace elastic;
using namespace elastic::stacks;

namespace {

ThreadLook in(const std::string& function, std::int64_t id = 1) {
  return {.id = id, .wait = "sleeping", .frames = {{function, "a.py", 1}, {"<module>", "a.py", 9}}};
}

RankLook worker(int rank, const std::string& function) {
  RankLook look{.rank = rank};
  look.process = {.pid = 100 + rank, .python = "3.11.2", .threads = {in(function)}};
  return look;
}

// Each group as a line: "worker 1, 2: load".
std::vector<std::string> told(const Groups& groups) {
  std::vector<std::string> out;
  for (const StackGroup& group : groups.groups) {
    std::vector<std::string> ranks;
    for (const Member& member : group.members) ranks.push_back(format("{}{}", member.node, member.rank));
    out.push_back(format("{} {}: {}", names_of(group.of)[static_cast<std::size_t>(group.of)], join(ranks, ", "),
                         group.frames.empty() ? group.problem : group.frames[0].function));
  }
  return out;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("equal stacks are one group, and the group with the fewest members is the first") {
  std::vector<RankLook> looks;
  for (int rank = 0; rank < 6; ++rank) looks.push_back(worker(rank, rank == 4 ? "load" : "all_reduce"));
  looks[2].process.threads.push_back(in("beat", 7));
  looks[3].children.push_back({.pid = 900, .threads = {in("fetch", 900)}});
  CHECK(told(grouped(looks)) ==
        Lines{"worker 4: load", "worker 0, 1, 2, 3, 5: all_reduce", "thread 2: beat", "child 3: fetch"});
}

TEST_CASE("workers without a stack of Python are grouped by the reason") {
  std::vector<RankLook> looks = {worker(0, "a"), worker(1, "a"), worker(2, "a")};
  for (const int rank : {0, 2}) {
    looks[static_cast<std::size_t>(rank)].process.problem = "it may not be read";
    looks[static_cast<std::size_t>(rank)].process.threads[0].frames.clear();
  }
  CHECK(told(grouped(looks)) == Lines{"worker 1: a", "worker 0, 2: it may not be read"});
  looks[0].process.problem.clear();
  CHECK(told(grouped(looks))[0] == "worker 0: it is in no function of Python");
}

TEST_CASE("what several nodes tell is merged, and each member keeps its node") {
  Gathering gathering(1 << 20);
  gathering.add(grouped({worker(0, "wait"), worker(1, "wait")}), "a");
  gathering.add(grouped({worker(2, "wait"), worker(3, "load")}), "b");
  CHECK(told(gathering.take_groups()) == Lines{"worker b3: load", "worker a0, a1, b2: wait"});
}

TEST_CASE("of what very many nodes tell there is only so much, and what is left out is counted") {
  constexpr std::size_t kBytes = 100'000;
  Gathering gathering(kBytes);
  for (int node = 0; node < 2000; ++node) {
    gathering.add(grouped({worker(2 * node, "wait"), worker(2 * node + 1, format("f{}", node))}), format("n{}", node));
  }
  const Groups all = gathering.take_groups();
  CHECK(text_of(all, SIZE_MAX).size() < 2 * kBytes);
  CHECK(all.left_out > 0);
  CHECK(all.more_members > 0);
  std::size_t members = 0;
  for (const StackGroup& group : all.groups) members += group.members.size();
  CHECK(members + static_cast<std::size_t>(all.more_members + all.left_out) == 4000);
}

TEST_CASE("a group tells up to four different waits") {
  std::vector<RankLook> looks;
  for (int rank = 0; rank < 9; ++rank) {
    looks.push_back(worker(rank, "f"));
    looks.back().process.threads[0].wait = format("wait {}", rank % 8);
    looks.back().process.threads[0].is_torn = rank > 6;
  }
  const Groups groups = grouped(looks);
  CHECK(groups.groups[0].waits == Lines{"wait 0", "wait 1", "wait 2", "wait 3"});
  CHECK(groups.groups[0].torn == 2);
}

TEST_CASE("groups are read as they were written, and made to fit") {
  std::vector<RankLook> looks;
  for (int rank = 0; rank < 40; ++rank) {
    looks.push_back(worker(rank, format("f{}", rank)));
    looks.back().process.threads[0].frames.resize(200, {"deep", "b.py", rank});
  }
  looks[7].more_children = 3;
  const Groups groups = grouped(looks);
  CHECK(told(read_groups(text_of(groups, 1 << 24))) == told(groups));
  CHECK(read_groups(text_of(groups, 1 << 24)).more_children == 3);
  const std::string small = text_of(groups, 40 * kMostBytesOfRank);
  CHECK(small.size() <= 40 * kMostBytesOfRank);
  const Groups cut = read_groups(small);
  CHECK(cut.groups.size() == 40);
  CHECK(cut.groups[0].is_cut);
  for (const std::size_t most : {100U, 1000U, 4000U, 9000U}) CHECK(text_of(groups, most).size() <= most);
  const Groups least = read_groups(text_of(groups, 4000));
  CHECK(least.left_out > 0);
  CHECK(least.groups.size() + static_cast<std::size_t>(least.left_out) == 40);
}

TEST_CASE("what is no text of groups gives none, and texts of other programs are made printable") {
  for (const char* wrong : {"", "{", "[]", "{\"groups\":7}", "[[[[[[[[[[[]]]]]]]]]]]"}) {
    CHECK(read_groups(wrong).groups.empty());
  }
  const Groups read = read_groups(
      R"({"groups":[{"of":"thread","frames":[{"function":"\u001b[2J","file":"a","line":1}],"members":[{"rank":1}]}]})");
  REQUIRE(read.groups.size() == 1);
  CHECK(read.groups[0].frames[0].function == "\\x1b[2J");
}
