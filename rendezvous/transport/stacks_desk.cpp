#include "rendezvous/transport/stacks_desk.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "src/base/json.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::transport {

using membership::MemberState;
using protocol::NodeId;

StacksDesk::Step StacksDesk::asks(Ticket ticket, const Nodes& nodes, std::int64_t now_ms) {
  tickets_.push_back(ticket);
  if (is_collecting() || (next_from_ms_ && now_ms < *next_from_ms_)) return {};
  return begin(nodes, now_ms);
}

StacksDesk::Step StacksDesk::begin(const Nodes& nodes, std::int64_t now_ms) {
  Step step{.wanted = {++collection_}};
  nodes_.clear();
  gathering_ = stacks::Gathering(stacks::kMostBytesOfJob);
  for (Node& node : nodes()) {
    if (node.session && open_.emplace(*node.session, nodes_.size()).second) step.asked.push_back(*node.session);
    nodes_.push_back({.name = std::move(node.name), .problem = std::move(node.problem)});
  }
  answers_until_ms_ = now_ms + kAnswerMs;
  if (step.asked.empty()) return end(now_ms);
  return step;
}

StacksDesk::Step StacksDesk::on_stacks(NodeId session, const protocol::NodeStacks& told, std::int64_t now_ms) {
  const auto place = open_.find(session);
  if (place == open_.end() || told.collection != collection_) return {};
  stacks::NodeAnswer& node = nodes_[place->second];
  open_.erase(place);
  stacks::Groups groups = stacks::read_groups(told.groups);
  if (!told.problem.empty()) {
    node.problem = printable(told.problem, limits::kAgentNameBytes);
  } else if (groups.groups.empty()) {
    node.problem = "its answer makes no sense";
  }
  if (node.problem.empty()) gathering_.add(std::move(groups), node.name);
  return end_if_done(now_ms);
}

StacksDesk::Step StacksDesk::has_gone(NodeId session, std::int64_t now_ms) {
  const auto place = open_.find(session);
  if (place == open_.end()) return {};
  nodes_[place->second].problem = "its connection ended before it had answered";
  open_.erase(place);
  return end_if_done(now_ms);
}

StacksDesk::Step StacksDesk::time_passes(const Nodes& nodes, std::int64_t now_ms) {
  if (const auto due = due_ms(); !due || now_ms < *due) return {};
  if (!is_collecting()) return begin(nodes, now_ms);
  for (const auto& [session, place] : open_) {
    nodes_[place].problem = format("it did not answer within {} s", kAnswerMs / 1000);
  }
  return end(now_ms);
}

std::optional<std::int64_t> StacksDesk::due_ms() const {
  if (is_collecting()) return answers_until_ms_;
  if (!tickets_.empty()) return next_from_ms_;
  return {};
}

StacksDesk::Step StacksDesk::end_if_done(std::int64_t now_ms) {
  if (is_collecting()) return {};
  return end(now_ms);
}

StacksDesk::Step StacksDesk::end(std::int64_t now_ms) {
  open_.clear();
  next_from_ms_ = now_ms + kPauseMs;
  const auto told = std::ranges::count(nodes_, std::string(), &stacks::NodeAnswer::problem);
  Step step{.answered = std::exchange(tickets_, {}),
            .note = format("the stacks of the workers were collected: {} of {} told theirs", told,
                           counted(nodes_.size(), "node"))};
  const stacks::StacksDocument document{
      .run_id = job_, .all = gathering_.take_groups(), .nodes = std::exchange(nodes_, {}), .notes = {}};
  step.document = stacks::json_of(document).dump() + "\n";
  return step;
}

std::vector<StacksDesk::Node> nodes_with_stacks(const membership::Roster& roster) {
  std::vector<const membership::Node*> nodes;
  std::map<std::string, int> names;
  for (const auto& [agent, node] : roster.nodes()) {
    nodes.push_back(&node);
    ++names[node.address];
  }
  const auto has_rank = [](const membership::Node& node) { return node.member_state() != MemberState::kReady; };
  std::ranges::sort(nodes, [&](const membership::Node* a, const membership::Node* b) {
    const auto order = [&](const membership::Node& node) {
      return std::tuple(!has_rank(node), has_rank(node) ? node.place.node_rank : 0, node.agent);
    };
    return order(*a) < order(*b);
  });
  std::vector<StacksDesk::Node> out;
  for (const membership::Node* node : nodes) {
    std::string name = printable(node->address);
    // Nodes of one host have one name.
    if (name.empty() || names[node->address] > 1) {
      const std::string which =
          has_rank(*node) ? format("node {}", node->place.node_rank) : format("agent {:x}", node->agent);
      name = name.empty() ? which : format("{} ({})", name, which);
    }
    StacksDesk::Node& told = out.emplace_back(StacksDesk::Node{.name = std::move(name)});
    if (!node->session) {
      told.problem = "it was lost";
    } else if (!has_rank(*node)) {
      told.problem = "it has no workers now";
    } else {
      told.session = node->session;
    }
  }
  return out;
}

}  // namespace elastic::transport
