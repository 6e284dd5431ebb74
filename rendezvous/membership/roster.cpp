#include "rendezvous/membership/roster.h"

#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::membership {

std::string Node::name() const {
  if (!slot) return address.empty() ? "a node" : address;
  return address.empty() ? format("node {}", place.node_rank) : format("node {} ({})", place.node_rank, address);
}

std::string Node::identity() const { return address.empty() ? format("agent {:x}", agent) : address; }

Node& Roster::add(Node node, MemberState member_state) {
  const protocol::AgentId agent = node.agent;
  const auto [place, is_new] = nodes_.emplace(agent, std::move(node));
  ELASTIC_CHECK(is_new);
  ++arrivals_;
  Node& added = place->second;
  added.member_state_ = member_state;
  ++counts_[static_cast<std::size_t>(member_state)];
  if (added.session) sessions_[*added.session] = agent;
  return added;
}

void Roster::move(Node& node, MemberState member_state) {
  --counts_[static_cast<std::size_t>(node.member_state_)];
  node.member_state_ = member_state;
  ++counts_[static_cast<std::size_t>(member_state)];
}

void Roster::erase(protocol::AgentId agent) {
  const auto found = nodes_.find(agent);
  ELASTIC_CHECK(found != nodes_.end());
  set_session(found->second, {});
  --counts_[static_cast<std::size_t>(found->second.member_state_)];
  nodes_.erase(found);
}

void Roster::set_session(Node& node, std::optional<protocol::NodeId> session) {
  if (node.session) sessions_.erase(*node.session);
  node.session = session;
  if (session) sessions_[*session] = node.agent;
}

Node& Roster::at(protocol::AgentId agent) { return const_cast<Node&>(std::as_const(*this).at(agent)); }

const Node& Roster::at(protocol::AgentId agent) const {
  const auto found = nodes_.find(agent);
  ELASTIC_CHECK(found != nodes_.end());
  return found->second;
}

Node* Roster::find(protocol::AgentId agent) {
  const auto found = nodes_.find(agent);
  return found == nodes_.end() ? nullptr : &found->second;
}

Node* Roster::of_session(protocol::NodeId session) {
  return const_cast<Node*>(std::as_const(*this).of_session(session));
}

const Node* Roster::of_session(protocol::NodeId session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &at(found->second);
}

void Roster::check_invariants() const {
  std::array<std::size_t, kMemberStates> counts{};
  std::size_t connected = 0;
  for (const auto& [agent, node] : nodes_) {
    ELASTIC_CHECK(node.agent == agent);
    ++counts[static_cast<std::size_t>(node.member_state_)];
    if (!node.session) continue;
    ++connected;
    const auto session = sessions_.find(*node.session);
    ELASTIC_CHECK(session != sessions_.end() && session->second == agent);
  }
  ELASTIC_CHECK(counts_ == counts);
  ELASTIC_CHECK(sessions_.size() == connected);
}

}  // namespace elastic::membership
