#include "rendezvous/membership/training_port.h"

#include <doctest/doctest.h>

#include <set>

#include "rendezvous/protocol/limits.h"

using namespace elastic;
using namespace elastic::membership;
using protocol::PortRange;
using protocol::TrainingPorts;

namespace {

using Ranges = std::vector<PortRange>;

// What a node tells of its ports if these are in use.
TrainingPorts with_in_use(std::uint16_t start, const std::set<int>& in_use) {
  return look_at_ports(start, [&](std::uint16_t port) { return !in_use.contains(port); });
}

std::set<int> from_to(int first, int last, int step = 1) {
  std::set<int> out;
  for (int port = first; port <= last; port += step) out.insert(port);
  return out;
}

NodePorts node(int rank, TrainingPorts ports) { return {rank, "host" + std::to_string(rank), std::move(ports)}; }

std::uint16_t agreed(const std::vector<NodePorts>& nodes) {
  const AgreedPort out = agree_on_port(nodes);
  CHECK((out.first == 0) == !out.why_none.empty());
  return out.first;
}

}  // namespace

TEST_CASE("a node tells the ports that are in use, and with them free ones between them that are too few") {
  CHECK(with_in_use(60'000, {}) == TrainingPorts{60'000, {}});
  CHECK(with_in_use(60'000, {60'100, 60'101}).in_use == Ranges{{60'100, 60'101}});
  CHECK(with_in_use(60'000, {60'100, 60'116}).in_use == Ranges{{60'100, 60'116}});  // 15 between them
  CHECK(with_in_use(60'000, {60'100, 60'117}).in_use == Ranges{{60'100, 60'100}, {60'117, 60'117}});
  CHECK(with_in_use(60'000, {60'015}).in_use == Ranges{{60'000, 60'015}});
  CHECK(with_in_use(60'000, {60'016}).in_use == Ranges{{60'016, 60'016}});
}

TEST_CASE("a node looks at each port that its start can lead to, up to 10,000 above it and to 65,515") {
  const auto last = [](std::uint16_t start) {
    int highest = 0;
    look_at_ports(start, [&](std::uint16_t port) {
      CHECK(port == (highest == 0 ? start : highest + 1));
      highest = port;
      return true;
    });
    return highest;
  };
  CHECK(last(1000) == 11'015);
  CHECK(last(60'000) == 65'515);
  CHECK(last(65'510) == 65'525);
  CHECK(last(kHighestStart) == 65'535);
}

TEST_CASE("of too many ranges in use the first are told, and all that follows counts as in use") {
  const int step = kTrainingPorts + 1;
  const TrainingPorts told = with_in_use(40'000, from_to(40'016, 50'015, step));
  REQUIRE(told.in_use.size() == limits::kPortRanges);
  CHECK(told.in_use[0] == PortRange{40'016, 40'016});
  CHECK(told.in_use.back().first == 40'016 + step * (static_cast<int>(limits::kPortRanges) - 1));
  CHECK(told.in_use.back().last == 65'535);
}

TEST_CASE("HCCL's ports are the lowest 16 in a row that are free on all nodes") {
  CHECK(agreed({node(0, with_in_use(60'000, {}))}) == 60'000);
  CHECK(agreed({node(0, with_in_use(60'000, {60'003}))}) == 60'004);
  CHECK(agreed({node(0, with_in_use(60'000, {60'003})), node(1, with_in_use(60'000, {60'015}))}) == 60'016);
  CHECK(agreed({node(0, with_in_use(60'000, {60'010})), node(1, with_in_use(60'000, {60'027}))}) == 60'011);
  CHECK(agreed({node(0, with_in_use(60'000, {60'010})), node(1, with_in_use(60'000, {60'026}))}) == 60'027);
  CHECK(agreed({node(0, with_in_use(60'000, {60'010, 60'036})), node(1, with_in_use(60'000, {60'020}))}) == 60'037);
  CHECK(agree_on_port({}).first == 0);
  CHECK(agree_on_port({}).why_none.empty());
}

TEST_CASE("HCCL's ports begin at the highest of the nodes' starts at least") {
  CHECK(agreed({node(0, with_in_use(60'000, {})), node(1, with_in_use(61'000, {}))}) == 61'000);
  CHECK(agreed({node(0, with_in_use(60'000, {61'003})), node(1, with_in_use(61'000, {}))}) == 61'004);
}

TEST_CASE("where HCCL's ports are free on no node or not on all, the warning says on which and what to do") {
  const TrainingPorts free = with_in_use(65'000, {});
  const TrainingPorts full = with_in_use(65'000, from_to(65'000, 65'535, 16));
  CHECK(
      agree_on_port({node(0, free), node(1, full)}).why_none ==
      "HCCL's ports are not agreed on, and HCCL_IF_BASE_PORT stays as each node was started: node 1 (host1) has no 16 "
      "TCP ports in a row that are free from 65000 to 65515; free some ports, or give all nodes another "
      "--training-port");
  CHECK(agree_on_port({{.ports = full}}).why_none.find(": this node has no 16 TCP ports in a row that are free") !=
        std::string::npos);
  const TrainingPorts low = with_in_use(65'000, from_to(65'200, 65'535));
  const TrainingPorts high = with_in_use(65'000, from_to(65'000, 65'200));
  CHECK(agree_on_port({node(0, low), node(1, high)})
            .why_none.find(": no 16 TCP ports in a row from 65000 to 65515 are free on all nodes; ") !=
        std::string::npos);
  CHECK(
      agree_on_port({node(0, with_in_use(1000, {})), node(1, with_in_use(60'000, {}))})
          .why_none.find(": node 0 (host0) looks at ports up to 11015, and node 1 (host1) at those from 60000 on; ") !=
      std::string::npos);
}

TEST_CASE("what a node tells in disorder does no harm") {
  CHECK(agreed({node(0, {60'000, {{60'020, 60'030}, {60'000, 60'010}, {60'005, 60'002}}})}) == 60'031);
  CHECK(agreed({node(0, {65'535, {}})}) == 0);
  CHECK(agreed({node(0, {0, {{0, 65'535}}})}) == 0);
}
