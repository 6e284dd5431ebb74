#include "rendezvous/coordinator/round_slots.h"

#include <set>
#include <utility>

#include "rendezvous/membership/ranks.h"
#include "rendezvous/protocol/limits.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;
using membership::Node;

std::vector<RoundMember> choose_round(const membership::Roster& roster, const Slots& last, int size) {
  std::vector<const Node*> ready;
  std::vector<membership::EligibleNode> eligible;
  std::set<AgentId> here;
  for (const auto& [agent, node] : roster.nodes()) {
    if (node.member_state() != membership::MemberState::kReady) continue;
    ready.push_back(&node);
    eligible.push_back({node.claimed_rank, node.slot, node.address, node.arrival});
    here.insert(agent);
  }
  std::vector<membership::VacantSlot> vacant;
  for (const Slot& slot : last) {
    if (!here.contains(slot.agent)) vacant.push_back({slot.slot, slot.address});
  }
  std::vector<const Node*> nodes;
  std::vector<membership::EligibleNode> chosen;
  for (const std::size_t index : membership::choose_members(eligible, size)) {
    nodes.push_back(ready[index]);
    chosen.push_back(eligible[index]);
  }
  std::vector<RoundMember> members;
  std::vector<membership::NodeShape> shapes;
  for (const membership::InSlot& in_slot : membership::slot_members(chosen, vacant)) {
    const Node& node = *nodes[in_slot.node];
    members.push_back({node.agent, in_slot.slot});
    shapes.push_back(node.shape);
  }
  std::vector<NodePlace> places = membership::assign_places(shapes);
  for (std::size_t rank = 0; rank < members.size(); ++rank) members[rank].place = places[rank];
  return members;
}

std::vector<membership::NodePorts> ports_of(const std::vector<RoundMember>& members, const membership::Roster& roster) {
  std::vector<membership::NodePorts> out;
  for (const RoundMember& member : members) {
    const Node& node = roster.nodes().at(member.agent);
    if (node.training_ports) out.push_back({member.place.node_rank, node.address, *node.training_ports});
  }
  return out;
}

bool have_all_succeeded(const Slots& slots, const membership::Roster& roster) {
  return std::ranges::all_of(slots, [&](const Slot& slot) {
    const auto found = roster.nodes().find(slot.agent);
    if (found == roster.nodes().end()) return false;
    return found->second.succeeded && found->second.member_state() == membership::MemberState::kReady;
  });
}

std::string addresses_of(const std::vector<RoundMember>& members, const membership::Roster& roster) {
  std::set<std::string> all;
  std::size_t bytes = 0;
  for (const RoundMember& member : members) {
    const Node& node = roster.nodes().at(member.agent);
    if (node.addresses.empty()) return "";
    for (std::string& address : split(node.addresses, ' ')) {
      if (const auto [at, is_new] = all.insert(std::move(address)); is_new) bytes += at->size() + 1;
    }
    if (bytes > limits::kAgentAdmittedBytes) return "";
  }
  return join({all.begin(), all.end()}, " ");
}

std::uint64_t membership_digest(Incarnation incarnation, RoundNumber round, const std::vector<AgentId>& agents) {
  // FNV-1a over the numbers: it detects mistakes, not attacks.
  std::uint64_t digest = 14695981039346656037ULL;
  const auto add = [&](std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) {
      digest = (digest ^ (number >> (8 * byte) & 0xff)) * 1099511628211ULL;
    }
  };
  add(incarnation);
  add(round);
  for (const AgentId agent : agents) add(agent);
  return digest;
}

}  // namespace elastic::coordinator
