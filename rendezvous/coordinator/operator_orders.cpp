#include "rendezvous/coordinator/operator_orders.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/base/address.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using membership::MemberState;
using membership::Node;
using membership::Roster;
using protocol::AgentId;
using Kind = OrderAnswered::Kind;

namespace {

// How many nodes an answer names at most.
constexpr std::size_t kMostNamed = 16;

// The node has a rank, which /status shows.
bool has_rank(const Node& node) { return node.member_state() != MemberState::kReady; }

// "2 (host2)", or "host5 (in no round)"
std::string label(const Node& node) {
  const std::string name = node.address.empty() ? "without a name" : node.address;
  return has_rank(node) ? format("{} ({})", node.place.node_rank, name) : format("{} (in no round)", name);
}

// The nodes by rank, those without one last: "the nodes are 0 (host0), 1 (host1), host5 (in no round)".
std::string list(std::vector<const Node*> nodes) {
  if (nodes.empty()) return "the job has no node now";
  std::ranges::stable_sort(nodes, {},
                           [](const Node* node) { return has_rank(*node) ? node->place.node_rank : INT32_MAX; });
  std::vector<std::string> labels;
  for (const Node* node : nodes) {
    if (labels.size() == kMostNamed) break;
    labels.push_back(label(*node));
  }
  const std::string more = nodes.size() > kMostNamed ? format(" and {} more", nodes.size() - kMostNamed) : "";
  return format("the {} {}{}", nodes.size() == 1 ? "only node is" : "nodes are", join(labels, ", "), more);
}

std::vector<const Node*> all_of(const Roster& roster) {
  std::vector<const Node*> nodes;
  for (const auto& [agent, node] : roster.nodes()) nodes.push_back(&node);
  return nodes;
}

bool has_address(const Node& node, const std::string& address) {
  const auto is_it = [&](const std::string& known) { return !known.empty() && same_address(known, address); };
  return std::ranges::any_of(split(node.addresses, ' '), is_it);
}

// The nodes that an operator may mean: a number is a rank, anything else a name or an address.
std::vector<const Node*> named(const Roster& roster, const std::string& wanted) {
  const auto rank = parse_int(wanted);
  std::vector<const Node*> found;
  for (const Node* node : all_of(roster)) {
    const bool is_it = rank ? has_rank(*node) && node->place.node_rank == *rank
                            : lower(node->address) == lower(wanted) || has_address(*node, wanted);
    if (is_it) found.push_back(node);
  }
  return found;
}

OperatorOrders::Ruling answer(Kind kind, std::string text) { return {.answer = {kind, std::move(text)}}; }

// Why no node was found, and which nodes there are.
std::string unknown(const Roster& roster, const std::string& wanted) {
  const auto nodes = all_of(roster);
  if (!parse_int(wanted)) return format("no node has the name or address {}; {}", printable(wanted), list(nodes));
  if (std::ranges::none_of(nodes, has_rank, [](const Node* node) -> const Node& { return *node; })) {
    return format("no node has a rank, because there is no round now; name it by its address; {}", list(nodes));
  }
  return format("no node has rank {}; {}", printable(wanted), list(nodes));
}

std::string several(const std::vector<const Node*>& found, const std::string& wanted) {
  const bool by_rank = std::ranges::all_of(found, [](const Node* node) { return has_rank(*node); });
  return format("{} may be any of {} nodes; {}; {}", printable(wanted), found.size(), list(found),
                by_rank ? "name one by its rank"
                        : "name one by its rank, or send SIGTERM to the elastic-run of one that is in no round");
}

// What becomes of the job when only `others` nodes are left. `begins_round`: the round stops for the node that leaves.
std::string what_follows(int others, const membership::FormingRules& rules, bool begins_round) {
  if (others == 0) return "; no other node is in the job, which ends with it";
  const std::string rest = others == 1 ? "the other node" : format("the other {} nodes", others);
  const int size = membership::round_size(others, rules);
  if (size > 0 && !begins_round) return "; the job goes on";
  if (size > 0) {
    return format("; then {}{} {} a new round, which --max-restarts does not count",
                  size < others ? format("{} of ", size) : "", rest, size == 1 ? "begins" : "begin");
  }
  const std::int64_t wait_ms = rules.replacement_wait_ms.value_or(rules.join_timeout_ms);
  return format(
      "; {} {} fewer than the {} that --nnodes asks for: the job then waits for more nodes, and fails if too "
      "few have joined after {} s",
      rest, others == 1 ? "is" : "are", membership::least_size(rules), wait_ms / 1000);
}

}  // namespace

OperatorOrders::Ruling OperatorOrders::judge(const OperatorOrder& order, const Facts& facts) {
  if (facts.job_ends) return answer(Kind::kAccepted, "the job is ending already, on all its nodes");
  if (order.kind == OperatorOrder::Kind::kDrain) return judge_drain(order, facts);
  const std::string nodes = counted(facts.roster.size(), "node");
  Ruling ruling = answer(Kind::kAccepted,
                         facts.has_workers ? format("the job stops: the workers of its {} get SIGTERM and the time of "
                                                    "--shutdown-timeout to end, then the job ends",
                                                    nodes)
                                           : format("the job ends: no workers run on its {}", nodes));
  ruling.stops = true;
  return ruling;
}

OperatorOrders::Ruling OperatorOrders::judge_drain(const OperatorOrder& order, const Facts& facts) {
  const std::string wanted(trim(order.node));
  const auto found = named(facts.roster, wanted);
  if (found.empty()) return answer(Kind::kUnknown, unknown(facts.roster, wanted));
  if (found.size() > 1) return answer(Kind::kRefused, several(found, wanted));
  const Node& node = *found.front();
  const std::string name = has_rank(node) ? format("node {}", label(node)) : label(node);
  if (node.member_state() == MemberState::kLeaving || has_drained(node.agent)) {
    return answer(Kind::kAccepted, format("{} is leaving already", name));
  }
  if (!node.session) {
    return answer(Kind::kRefused,
                  format("{} has lost its connection, and cannot be told; the job goes on without it when its lease is "
                         "over, and if it comes back it can be ordered again",
                         name));
  }
  if (node.hosts_coordinator && !facts.may_transfer_leadership) {
    return answer(Kind::kRefused,
                  format("{} hosts the job's coordinator, and the job would end with it; --stop ends the job, and a "
                         "coordinator that --coordinator-only runs elsewhere lets every node leave",
                         name));
  }
  if (drained_.size() >= limits::kNodesPerJob) {
    return answer(Kind::kRefused,
                  format("{} nodes were told to leave and have not left; try again later", drained_.size()));
  }
  drained_.insert(node.agent);
  const bool has_workers = node.member_state() == MemberState::kMember || node.member_state() == MemberState::kStopping;
  // The others need the store of a node of rank 0 even when its own workers have succeeded.
  const bool is_needed = has_workers || (node.member_state() == MemberState::kDone && node.place.node_rank == 0);
  Ruling ruling = answer(Kind::kAccepted,
                         format("{} leaves: {}{}", name,
                                has_workers ? "its workers get SIGTERM and the time of its --shutdown-timeout to end"
                                            : "no workers of it run",
                                what_follows(others(node.agent, facts.roster), facts.next_round, is_needed)));
  ruling.leaves = node.agent;
  return ruling;
}

int OperatorOrders::others(AgentId leaver, const Roster& roster) const {
  const auto stays = [&](const Node& each) {
    return each.agent != leaver && each.session && each.member_state() != MemberState::kLeaving &&
           !has_drained(each.agent);
  };
  return static_cast<int>(
      std::ranges::count_if(roster.nodes(), [&](const auto& entry) { return stays(entry.second); }));
}

}  // namespace elastic::coordinator
