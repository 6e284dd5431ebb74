#include "health/hang_evidence/link_facts.h"

#include <doctest/doctest.h>

#include "health/hang/bounds.h"

namespace elastic::hang {
namespace {

using Links = std::vector<LinkSample>;
using Texts = std::vector<std::string>;

LinkSample port_of(std::string device, std::string state = "ACTIVE", std::string phys_state = "LinkUp",
                   std::string layer = "InfiniBand") {
  return {.device = std::move(device),
          .port = 1,
          .state = std::move(state),
          .phys_state = std::move(phys_state),
          .link_layer = std::move(layer)};
}

Texts faults(const Links& first, const Links& second) {
  Texts texts;
  for (const LinkFault& link : link_faults_of(first, second, 2000)) texts.push_back(link.port + " " + link.fault);
  return texts;
}
Texts faults(const Links& links) { return faults(links, links); }

}  // namespace

TEST_CASE("a port that is not active while others are, or was before, is to be looked at") {
  const Links well = {port_of("mlx5_0"), port_of("mlx5_1")};
  CHECK(faults(well).empty());
  Links ill = {port_of("mlx5_0"), port_of("mlx5_1", "DOWN", "Polling")};
  CHECK(faults(ill) == Texts{"port 1 of mlx5_1 is DOWN (Polling)"});
  ill[1].phys_state = "Disabled";
  CHECK(faults(ill).empty());
  CHECK(faults(well, ill) == Texts{"port 1 of mlx5_1 is DOWN (Disabled)"});
  ill[1].state = "";
  CHECK(faults(ill).empty());
}

TEST_CASE("where no port is active all are to be looked at, and idle ports of another kind of link are not") {
  CHECK(faults({port_of("mlx5_0", "INIT", "")}) == Texts{"port 1 of mlx5_0 is INIT"});
  const Links mixed = {port_of("mlx5_0"), port_of("mlx5_9", "DOWN", "Polling", "Ethernet")};
  CHECK(faults(mixed).empty());
}

TEST_CASE("a port whose errors rise is to be looked at, and one that has counted some before is not") {
  Links first = {port_of("mlx5_0"), port_of("mlx5_1")};
  first[0].counters = {{"symbol_error", 7}, {"link_downed", 3}};
  first[1].counters = {{"symbol_error", 7}, {"packet_seq_err", 9}};
  Links second = first;
  CHECK(faults(first, second).empty());
  second[0].counters["symbol_error"] = 19;
  second[0].counters["link_downed"] = 4;
  second[1].counters["packet_seq_err"] = 0;  // it was reset
  CHECK(faults(first, second) ==
        Texts{"port 1 of mlx5_0 has counted symbol_error 12 more, link_downed 1 more within 2 s"});
  CHECK(faults({}, second).empty());
}

TEST_CASE("of many ports only the first ones are told, the inactive ones before the others") {
  Links first = {port_of("mlx5_a")};
  first[0].counters = {{"symbol_error", 0}};
  for (int i = 0; i < 100; ++i) first.push_back(port_of("mlx5_" + std::to_string(i), "DOWN", "Polling"));
  Links second = first;
  second[0].counters["symbol_error"] = 1;
  const Texts told = faults(first, second);
  CHECK(told.size() == bounds::kLinkFaults);
  CHECK(told.front() == "port 1 of mlx5_0 is DOWN (Polling)");
}

TEST_CASE("each port is told with what it has moved and with its errors") {
  Links first = {port_of("mlx5_0"), port_of("rxe0", "", "", "")};
  first[0].counters = {{"port_xmit_data", 100}, {"port_rcv_data", 5}, {"symbol_error", 0}, {"link_downed", 3}};
  Links second = first;
  second[0].counters["port_xmit_data"] = 356;
  CHECK(link_lines(first, second, 2000) ==
        Texts{"port 1 of mlx5_0: ACTIVE (LinkUp), InfiniBand; 1024 bytes sent and 0 received within 2 s; link_downed 3",
              "port 1 of rxe0: state unknown"});
}

}  // namespace elastic::hang
