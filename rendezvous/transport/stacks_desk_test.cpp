#include "rendezvous/transport/stacks_desk.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "src/base/text.h"

using namespace elastic;
using namespace elastic::transport;
using protocol::NodeId;
using protocol::NodeStacks;
using Step = StacksDesk::Step;
using Sessions = std::vector<NodeId>;
using Tickets = std::vector<StacksDesk::Ticket>;

namespace {

// What a node with one worker tells.
std::string told_by(int rank, const std::string& function) {
  stacks::Groups groups;
  groups.groups.push_back({.frames = {{function, "train.py", 7}}, .members = {{.rank = rank, .pid = 40 + rank}}});
  return stacks::text_of(groups, 2000);
}

struct Desk {
  StacksDesk desk{"train"};
  std::vector<StacksDesk::Node> nodes = {{"a", 1}, {"b", 2}, {"c", {}, "it was lost"}};

  StacksDesk::Nodes all() {
    return [this] { return nodes; };
  }
  Step asks(StacksDesk::Ticket ticket, std::int64_t now_ms) { return desk.asks(ticket, all(), now_ms); }
  Step on_stacks(NodeId session, std::uint64_t collection, const std::string& groups, std::int64_t now_ms = 100) {
    return desk.on_stacks(session, {.collection = collection, .groups = groups}, now_ms);
  }
};

// "0 load; 1 wait; c: it was lost": the ranks and the newest calls, and the nodes without an answer.
std::string told(const std::string& text) {
  const auto document = stacks::read_document(text);
  REQUIRE(document);
  CHECK(document->run_id == "train");
  std::vector<std::string> parts;
  for (const stacks::StackGroup& group : document->all.groups) {
    std::vector<std::string> who;
    for (const stacks::Member& member : group.members) who.push_back(format("{}@{}", member.rank, member.node));
    parts.push_back(format("{} {}", join(who, ","), group.frames.at(0).function));
  }
  for (const stacks::NodeAnswer& node : document->nodes) {
    if (!node.problem.empty()) parts.push_back(format("{}: {}", node.name, node.problem));
  }
  return join(parts, "; ");
}

}  // namespace

TEST_CASE("all nodes with workers are asked, and when all have answered who asked gets the document") {
  Desk desk;
  const Step begun = desk.asks(7, 0);
  CHECK(begun.asked == Sessions{1, 2});
  CHECK(begun.wanted.collection == 1);
  CHECK(begun.answered.empty());
  CHECK(desk.desk.due_ms() == StacksDesk::kAnswerMs);
  CHECK(desk.on_stacks(2, 1, told_by(1, "load")).answered.empty());
  const Step done = desk.on_stacks(1, 1, told_by(0, "wait"));
  CHECK(done.answered == Tickets{7});
  CHECK(told(done.document) == "0@a wait; 1@b load; c: it was lost");
  CHECK(done.note == "the stacks of the workers were collected: 2 of 3 nodes told theirs");
  CHECK(!desk.desk.due_ms());
}

TEST_CASE("who asks while nodes are asked gets the same, and who asks soon after waits for the next collection") {
  Desk desk;
  desk.asks(1, 0);
  CHECK(desk.asks(2, 10).asked.empty());
  desk.on_stacks(1, 1, told_by(0, "wait"), 1000);
  CHECK(desk.on_stacks(2, 1, told_by(1, "wait"), 1000).answered == Tickets{1, 2});
  const std::int64_t next_ms = 1000 + StacksDesk::kPauseMs;
  CHECK(desk.asks(3, 1500).asked.empty());
  CHECK(desk.asks(4, 2500).asked.empty());
  CHECK(desk.desk.due_ms() == next_ms);
  CHECK(desk.desk.time_passes(desk.all(), next_ms - 1).asked.empty());
  const Step next = desk.desk.time_passes(desk.all(), next_ms);
  CHECK(next.asked == Sessions{1, 2});
  CHECK(next.wanted.collection == 2);
  desk.on_stacks(1, 2, told_by(0, "a"), next_ms);
  const Step done = desk.on_stacks(2, 2, told_by(1, "b"), next_ms);
  CHECK(done.answered == Tickets{3, 4});
  CHECK(told(done.document) == "0@a a; 1@b b; c: it was lost");
  CHECK(desk.asks(5, next_ms + StacksDesk::kPauseMs).asked == Sessions{1, 2});
}

TEST_CASE("a node that does not answer in time, whose session ends or that has a reason is named") {
  Desk desk;
  desk.nodes.push_back({"d", 4});
  desk.nodes.push_back({"e", 5});
  desk.asks(1, 0);
  desk.on_stacks(1, 1, told_by(0, "wait"));
  CHECK(desk.desk.has_gone(2, 5).answered.empty());
  CHECK(
      desk.desk.on_stacks(4, {.collection = 1, .groups = "", .problem = "it has\nno workers now"}, 5).answered.empty());
  CHECK(desk.desk.time_passes(desk.all(), StacksDesk::kAnswerMs - 1).answered.empty());
  const Step done = desk.desk.time_passes(desk.all(), StacksDesk::kAnswerMs);
  CHECK(done.answered == Tickets{1});
  CHECK(told(done.document) ==
        "0@a wait; b: its connection ended before it had answered; c: it was lost; d: it has\\x0ano workers now; "
        "e: it did not answer within 15 s");
}

TEST_CASE("an answer that nobody waits for, that comes twice or makes no sense changes nothing else") {
  Desk desk;
  CHECK(desk.on_stacks(1, 1, told_by(0, "early")).answered.empty());
  desk.asks(1, 0);
  CHECK(desk.on_stacks(9, 1, told_by(0, "stranger")).answered.empty());
  CHECK(desk.on_stacks(1, 7, told_by(0, "old")).answered.empty());
  CHECK(desk.on_stacks(1, 1, "no JSON").answered.empty());
  CHECK(desk.on_stacks(1, 1, told_by(0, "again")).answered.empty());
  CHECK(desk.desk.has_gone(1, 1).answered.empty());
  CHECK(told(desk.on_stacks(2, 1, told_by(1, "wait")).document) ==
        "1@b wait; a: its answer makes no sense; c: it was lost");
}

TEST_CASE("a job of which no node can be asked is answered at once") {
  Desk desk;
  desk.nodes = {{"c", {}, "it has no workers now"}};
  const Step done = desk.asks(1, 0);
  CHECK(done.asked.empty());
  CHECK(done.answered == Tickets{1});
  CHECK(told(done.document) == "c: it has no workers now");
  desk.nodes.clear();
  CHECK(desk.asks(2, 100).answered.empty());
  CHECK(told(desk.desk.time_passes(desk.all(), StacksDesk::kPauseMs).document).empty());
}

TEST_CASE("nodes are asked by rank, those of one host by different names, and those without workers are not") {
  membership::Roster roster;
  const auto add = [&](protocol::AgentId agent, const std::string& address, int rank,
                       membership::MemberState member_state) {
    membership::Node node;
    node.agent = agent;
    node.address = address;
    node.place.node_rank = rank;
    membership::Node& added = roster.add(std::move(node), member_state);
    if (member_state != membership::MemberState::kLost) roster.set_session(added, static_cast<NodeId>(100 + agent));
  };
  using membership::MemberState;
  add(1, "host9", 2, MemberState::kMember);
  add(2, "host0", 1, MemberState::kDone);
  add(3, "host0", 0, MemberState::kStopping);
  add(4, "host4", 3, MemberState::kLost);
  add(5, "host5", 0, MemberState::kReady);
  std::vector<std::string> found;
  for (const StacksDesk::Node& node : nodes_with_stacks(roster)) {
    found.push_back(format("{} {} {}", node.name, node.session.value_or(0), node.problem));
  }
  CHECK(found == std::vector<std::string>{"host0 (node 0) 103 ", "host0 (node 1) 102 ", "host9 101 ",
                                          "host4 0 it was lost", "host5 0 it has no workers now"});
}
