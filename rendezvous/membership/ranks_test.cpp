#include "rendezvous/membership/ranks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "src/base/test_random.h"

using namespace elastic;
using membership::assign_places;
using membership::choose_members;
using membership::EligibleNode;
using membership::InSlot;
using membership::natural_less;
using membership::slot_members;
using membership::VacantSlot;

namespace {

EligibleNode newcomer(std::string address, std::uint64_t arrival = 0) {
  return {.claimed_rank = {}, .slot = {}, .address = std::move(address), .arrival = arrival};
}
EligibleNode survivor(int slot, std::string address, std::uint64_t arrival = 0) {
  return {.claimed_rank = {}, .slot = slot, .address = std::move(address), .arrival = arrival};
}
EligibleNode claims(int rank, std::string address, std::uint64_t arrival = 0) {
  return {.claimed_rank = rank, .slot = {}, .address = std::move(address), .arrival = arrival};
}

// The slots in the order of the nodes.
std::vector<int> slots(const std::vector<EligibleNode>& chosen, const std::vector<VacantSlot>& vacant = {}) {
  std::vector<int> result(chosen.size(), -1);
  for (const InSlot& in_slot : slot_members(chosen, vacant)) result.at(in_slot.node) = in_slot.slot;
  return result;
}

using Indices = std::vector<std::size_t>;
using Slots = std::vector<int>;

}  // namespace

TEST_CASE("one node has all ranks") {
  CHECK(assign_places({{4, "default"}}) == std::vector<protocol::NodePlace>{{0, 1, 0, 4, 0, 4}});
}

TEST_CASE("nodes of different size and role get consecutive global and role ranks") {
  const auto places = assign_places({{2, "trainer"}, {1, "ps"}, {3, "trainer"}});
  CHECK(places == std::vector<protocol::NodePlace>{{0, 3, 0, 6, 0, 5}, {1, 3, 2, 6, 0, 1}, {2, 3, 3, 6, 2, 5}});
}

TEST_CASE("local rank 1 of two nodes of eight is global rank 1 and 9") {
  const auto places = assign_places({{8, "default"}, {8, "default"}});
  CHECK(places[0].base_rank + 1 == 1);
  CHECK(places[1].base_rank + 1 == 9);
  CHECK(places[1].node_rank == 1);
  CHECK(places[1].node_count == 2);
  CHECK(places[0].world_size == 16);
}

TEST_CASE("digits in addresses count by value") {
  const std::vector<std::string> ascending = {"",
                                              "2",
                                              "10",
                                              "10.0.0.1",
                                              "10.0.0.2",
                                              "10.0.0.10",
                                              "10.0.1.0",
                                              "192.168.0.1",
                                              "fe80::1",
                                              "fe80::2",
                                              "fe80::10",
                                              "node",
                                              "node-1",
                                              "node002",
                                              "node02",
                                              "node2",
                                              "node2.a",
                                              "node2a",
                                              "node10",
                                              "node99999999999999999999998",
                                              "node99999999999999999999999",
                                              "nodea"};
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    for (std::size_t j = 0; j < ascending.size(); ++j) {
      CAPTURE(ascending[i]);
      CAPTURE(ascending[j]);
      CHECK(natural_less(ascending[i], ascending[j]) == (i < j));
    }
  }
}

TEST_CASE("the natural order is total") {
  // All texts of up to three of these: digits, leading zeros, bytes below and above the digits.
  const std::string bytes = "019/a\xff";
  std::vector<std::string> texts = {""};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == 3) break;  // they are in order of length
    for (const char byte : bytes) texts.push_back(texts[i] + byte);
  }
  std::ranges::sort(texts, natural_less);
  bool total = true;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (std::size_t j = 0; j < texts.size(); ++j) total = total && natural_less(texts[i], texts[j]) == (i < j);
  }
  CHECK(total);
}

TEST_CASE("the lowest claimed ranks form the round, the others are on standby") {
  std::vector<EligibleNode> nodes;
  for (int rank = 0; rank < 10; ++rank) nodes.push_back(claims(9 - rank, "h", static_cast<std::uint64_t>(rank)));
  CHECK(choose_members(nodes, 8) == Indices{9, 8, 7, 6, 5, 4, 3, 2});
}

TEST_CASE("a newcomer drives out no survivor, not even by a claim or by having come first") {
  const std::vector<EligibleNode> nodes = {claims(0, "a", 1), survivor(7, "b", 9), newcomer("c", 2),
                                           survivor(3, "d", 8)};
  CHECK(choose_members(nodes, 2) == Indices{3, 1});
  CHECK(choose_members(nodes, 3) == Indices{3, 1, 0});
  CHECK(choose_members(nodes, 4) == Indices{3, 1, 0, 2});
}

TEST_CASE("of survivors above the size those with the highest rank slots go") {
  const std::vector<EligibleNode> nodes = {survivor(2, "a", 1), survivor(0, "b", 4), survivor(1, "c", 3)};
  CHECK(choose_members(nodes, 2) == Indices{1, 2});
}

TEST_CASE("without claim and rank slot the first to join are chosen, whatever their addresses") {
  const std::vector<EligibleNode> nodes = {newcomer("a", 3), newcomer("b", 2), newcomer("c", 1)};
  CHECK(choose_members(nodes, 2) == Indices{2, 1});
}

TEST_CASE("fewer eligible nodes than asked for are all chosen, and none of none") {
  CHECK(choose_members({newcomer("a")}, 5) == Indices{0});
  CHECK(choose_members({}, 5).empty());
  CHECK(choose_members({newcomer("a")}, 0).empty());
  CHECK(choose_members({newcomer("a")}, -1).empty());
}

TEST_CASE("nodes of a first round have their rank slots in natural order of their addresses") {
  CHECK(slots({newcomer("node10", 1), newcomer("node2", 2), newcomer("node1", 3)}) == Slots{2, 1, 0});
}

TEST_CASE("nodes of one address have their rank slots in the order in which they joined") {
  CHECK(slots({newcomer("h", 3), newcomer("h", 1), newcomer("h", 2)}) == Slots{2, 0, 1});
}

TEST_CASE("a claimed rank is the rank slot; nodes without a claim fill what is left at first, and later come behind") {
  CHECK(slots({claims(2, "a"), newcomer("b"), claims(0, "c")}) == Slots{2, 1, 0});
  CHECK(slots({claims(1, "a"), claims(2, "b"), newcomer("c"), newcomer("d")}) == Slots{1, 2, 0, 3});
  CHECK(slots({claims(2, "a"), newcomer("b"), survivor(0, "c")}) == Slots{2, 3, 0});
  const auto in_slot = slot_members({claims(2, "a"), newcomer("b"), claims(0, "c")}, {});
  CHECK(in_slot == std::vector<InSlot>{{2, 0}, {1, 1}, {0, 2}});
}

TEST_CASE("survivors keep their rank slots when one between them is gone") {
  CHECK(slots({survivor(0, "z"), survivor(2, "y"), survivor(3, "x")}, {{1, "w"}}) == Slots{0, 2, 3});
}

TEST_CASE("a replacement takes the lost node's rank slot") {
  CHECK(slots({survivor(0, "a"), survivor(2, "c"), newcomer("z")}, {{1, "b"}}) == Slots{0, 2, 1});
}

TEST_CASE("a node that comes back takes its own rank slot, the others the lowest in natural order") {
  CHECK(slots({newcomer("n10"), newcomer("n9"), newcomer("n3"), survivor(2, "n2")},
              {{3, "n3"}, {1, "n1"}, {0, "n0"}}) == Slots{1, 0, 3, 2});
}

TEST_CASE("two nodes of one host that come back take that host's two rank slots") {
  CHECK(slots({newcomer("h", 1), newcomer("a", 2), newcomer("h", 3)}, {{5, "h"}, {4, "x"}, {3, "h"}}) ==
        Slots{3, 4, 5});
}

TEST_CASE("newcomers for whom no rank slot is vacant come behind all others") {
  CHECK(slots({newcomer("b"), survivor(4, "x"), newcomer("c"), newcomer("a")}, {{1, "gone"}}) == Slots{5, 4, 6, 1});
}

TEST_CASE("a claim drives the holder of an unclaimed rank slot to a vacant one, before newcomers") {
  CHECK(slots({survivor(1, "a"), claims(1, "b"), newcomer("0")}, {{0, "gone"}}) == Slots{0, 1, 2});
  CHECK(slots({survivor(1, "a"), claims(1, "b")}) == Slots{2, 1});
}

TEST_CASE("a vacant rank slot that is claimed, or held again, is vacant no more") {
  CHECK(slots({claims(1, "b"), survivor(0, "a"), newcomer("c")}, {{1, "c"}, {0, "x"}, {2, "y"}, {2, "y"}}) ==
        Slots{1, 0, 2});
}

TEST_CASE("of two claims to one rank the holder's wins, then the earlier; never do two have one rank slot") {
  EligibleNode holder = claims(1, "z", 9);
  holder.slot = 1;
  CHECK(slots({claims(1, "a", 1), holder}) == Slots{2, 1});
  CHECK(slots({claims(1, "a", 5), claims(1, "b", 4)}) == Slots{0, 1});
}

TEST_CASE("claims and rank slots below 0 count as none, and one at the end of all numbers leaves room") {
  constexpr int kLast = std::numeric_limits<int>::max();
  CHECK(slots({claims(-1, "b"), survivor(-5, "a")}, {{-2, "b"}}) == Slots{1, 0});
  CHECK(slots({claims(kLast, "b"), newcomer("c"), newcomer("a")}) == Slots{kLast, 1, 0});
  CHECK(slots({claims(kLast - 1, "b"), newcomer("c"), newcomer("a"), claims(0, "d")}) == Slots{kLast - 1, 2, 1, 0});
}

namespace {

// Random nodes: claims and slots that collide, several nodes of one address, vacant slots.
struct Mix {
  std::vector<EligibleNode> nodes;
  std::vector<VacantSlot> vacant;
};

Mix any_mix(TestRandom& random) {
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  Mix mix;
  const std::uint64_t count = below(13);
  for (std::uint64_t i = 0; i < count; ++i) {
    EligibleNode node = newcomer("node" + std::to_string(below(12)), i);
    if (below(3) == 0) node.claimed_rank = static_cast<int>(below(10));
    if (below(2) == 0) node.slot = static_cast<int>(below(10));
    mix.nodes.push_back(node);
  }
  for (std::uint64_t i = below(6); i > 0; --i) {
    mix.vacant.push_back({static_cast<int>(below(12)), "node" + std::to_string(below(12))});
  }
  std::ranges::shuffle(mix.nodes, random);
  return mix;
}

std::map<std::uint64_t, int> slot_by_arrival(const Mix& mix) {
  std::map<std::uint64_t, int> result;
  for (const InSlot& in_slot : slot_members(mix.nodes, mix.vacant)) {
    result[mix.nodes[in_slot.node].arrival] = in_slot.slot;
  }
  return result;
}

}  // namespace

TEST_CASE("whatever is claimed and held, every node has one rank slot, claims first, then survivors") {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    TestRandom random(seed);
    const Mix mix = any_mix(random);
    const auto in_slot = slot_members(mix.nodes, mix.vacant);
    REQUIRE(in_slot.size() == mix.nodes.size());
    REQUIRE(std::ranges::is_sorted(in_slot, {}, &InSlot::slot));

    std::map<int, std::size_t> by_slot;
    std::set<std::size_t> placed;
    for (const InSlot& one : in_slot) {
      REQUIRE(one.slot >= 0);
      REQUIRE(by_slot.emplace(one.slot, one.node).second);
      placed.insert(one.node);
    }
    REQUIRE(placed.size() == mix.nodes.size());

    std::set<int> claimed, held, offered;
    for (const EligibleNode& node : mix.nodes) {
      if (node.claimed_rank) claimed.insert(*node.claimed_rank);
    }
    for (const InSlot& one : in_slot) {  // a node that got the rank it claims does not hold its old slot
      const EligibleNode& node = mix.nodes[one.node];
      if (node.slot && node.claimed_rank != one.slot) held.insert(*node.slot);
    }
    for (const VacantSlot& slot : mix.vacant) offered.insert(slot.slot);
    for (const int rank : claimed) REQUIRE(mix.nodes[by_slot.at(rank)].claimed_rank == rank);
    for (const int slot : held) {
      if (!claimed.contains(slot)) REQUIRE(mix.nodes[by_slot.at(slot)].slot == slot);
    }
    // The other nodes take vacant slots, their own or the lowest first, and new slots only when none is vacant.
    bool somebody_behind = false;
    int last_of_front = -1;
    for (const auto& [slot, node] : by_slot) {
      const bool front = claimed.contains(slot) || held.contains(slot) || offered.contains(slot);
      somebody_behind = somebody_behind || !front;
      if (front) last_of_front = slot;
    }
    const bool is_first =
        mix.vacant.empty() && std::ranges::none_of(mix.nodes, [](const EligibleNode& node) { return node.slot >= 0; });
    if (somebody_behind && !is_first) {
      for (const int slot : offered) REQUIRE(by_slot.contains(slot));
      int next = last_of_front;
      for (auto behind = by_slot.upper_bound(last_of_front); behind != by_slot.end(); ++behind) {
        REQUIRE(behind->first == ++next);
      }
    }
    Mix shuffled = mix;
    std::ranges::shuffle(shuffled.nodes, random);
    std::ranges::shuffle(shuffled.vacant, random);
    // Two vacant slots of one number and different addresses are no valid input. Otherwise the order does not matter.
    if (offered.size() == mix.vacant.size()) REQUIRE(slot_by_arrival(shuffled) == slot_by_arrival(mix));
  }
}

TEST_CASE("over many rounds of losses and joins nobody who stays is moved or left out for a newcomer") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    TestRandom random(seed);
    std::vector<EligibleNode> known;
    std::uint64_t arrivals = 0;
    for (int round = 0; round < 12; ++round) {
      std::vector<VacantSlot> vacant;
      std::erase_if(known, [&](const EligibleNode& node) {
        if (random() % 4 != 0) return false;
        if (node.slot) vacant.push_back({*node.slot, node.address});
        return true;
      });
      for (std::uint64_t joins = random() % 5; joins > 0; --joins) {
        known.push_back(newcomer("node" + std::to_string(random() % 30), ++arrivals));
      }
      const auto had_slot = [](const EligibleNode& node) { return node.slot.has_value(); };
      const auto survivors = static_cast<std::size_t>(std::ranges::count_if(known, had_slot));
      const Indices chosen = choose_members(known, 8);
      REQUIRE(chosen.size() == std::min<std::size_t>(8, known.size()));
      std::vector<EligibleNode> members;
      for (const std::size_t index : chosen) members.push_back(known[index]);
      REQUIRE(static_cast<std::size_t>(std::ranges::count_if(members, had_slot)) == std::min(survivors, chosen.size()));

      const auto in_slot = slot_members(members, vacant);
      // If all vacant slots are filled no node rank changes.
      const bool all_replaced = members.size() >= survivors + vacant.size();
      for (EligibleNode& node : known) node.slot.reset();
      for (const InSlot& one : in_slot) {
        if (members[one.node].slot) REQUIRE(members[one.node].slot == one.slot);
        known[chosen[one.node]].slot = one.slot;
      }
      if (all_replaced) {
        for (const VacantSlot& slot : vacant) {
          REQUIRE(std::ranges::count(in_slot, slot.slot, &InSlot::slot) == 1);
        }
      }
    }
  }
}

TEST_CASE("ten thousand nodes get their rank slots, and after the loss of each second the others keep theirs") {
  constexpr int kNodes = 10'000;
  std::vector<EligibleNode> nodes;
  for (int i = 0; i < kNodes; ++i) {
    nodes.push_back(newcomer("10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256),
                             static_cast<std::uint64_t>(kNodes - i)));
  }
  const Indices chosen = choose_members(nodes, kNodes);
  REQUIRE(chosen.size() == kNodes);
  CHECK(chosen.front() == kNodes - 1);  // it arrived first
  const auto first = slot_members(nodes, {});
  bool in_order = true;
  for (std::size_t i = 0; i < kNodes; ++i) in_order = in_order && first[i] == InSlot{i, static_cast<int>(i)};
  CHECK(in_order);

  std::vector<EligibleNode> left;
  std::vector<VacantSlot> vacant;
  for (int i = 0; i < kNodes; ++i) {
    const std::string& address = nodes[static_cast<std::size_t>(i)].address;
    if (i % 2 == 0)
      left.push_back(survivor(i, address, static_cast<std::uint64_t>(i)));
    else
      vacant.push_back({i, address});
  }
  for (int i = 0; i < kNodes / 2; ++i) left.push_back(newcomer("n" + std::to_string(i), 20'000));
  const auto second = slot_members(left, vacant);
  bool kept = second.size() == kNodes;
  for (std::size_t i = 0; kept && i < kNodes; ++i) {
    const std::size_t expected = i % 2 == 0 ? i / 2 : kNodes / 2 + i / 2;
    kept = second[i] == InSlot{expected, static_cast<int>(i)};
  }
  CHECK(kept);
}
