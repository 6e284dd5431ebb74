#include "src/warm/packets.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace elastic::warm;

namespace {

std::string packet(char kind, const std::vector<std::string>& fields) {
  std::string out(1, kind);
  for (const std::string& field : fields) out += std::string(1, '\0') + field;
  return out;
}

}  // namespace

TEST_CASE("what the import server says is read, and what it cannot say is nothing") {
  const auto ready = read_report(packet('R', {"2117", "3610", "2230", "381188", "bad,worse", "/usr/lib", "/venv"}));
  REQUIRE(ready);
  const auto& facts = std::get<Ready>(*ready);
  CHECK(facts.modules == 2117);
  CHECK(facts.cpu_ms == 3610);
  CHECK(facts.spared_cpu_ms == 2230);
  CHECK(facts.memory_kib == 381188);
  CHECK(facts.struck == "bad,worse");
  CHECK(facts.places == std::vector<std::string>{"/usr/lib", "/venv"});
  const auto refused = read_report(packet('F', {"no torch"}));
  REQUIRE(refused);
  CHECK(std::get<Refused>(*refused).why == "no torch");
  const auto struck = read_report(packet('S', {"pandas", "starts threads"}));
  REQUIRE(struck);
  CHECK(std::get<Struck>(*struck).package == "pandas");
  const auto parked = read_report("W4711");
  REQUIRE(parked);
  CHECK(std::get<Parked>(*parked).pid == 4711);
  const auto forked = read_report("D");
  REQUIRE(forked);
  CHECK(std::holds_alternative<Forked>(*forked));
  for (const std::string& none :
       {std::string(), std::string("W"), std::string("W0"), std::string("W-3"), std::string("D1"),
        packet('R', {"1", "2", "3", "x", ""}), packet('R', {"1"}), packet('F', {}), packet('R', {"1", "2", "3", "4"}),
        packet('X', {"1", "2", "3", "4", "5"})}) {
    CAPTURE(none);
    CHECK_FALSE(read_report(none));
  }
}

TEST_CASE("an order holds the number of variables, the variables and the command line") {
  const std::vector<std::string> variables = {"RANK=1", "EMPTY="};
  const std::vector<std::string> arguments = {"python", "-u", "train.py", ""};
  CHECK(order_packet(variables, arguments) == "O" + packet('2', {"RANK=1", "EMPTY=", "python", "-u", "train.py", ""}));
  CHECK(park_packet(8) == "P8");
}
