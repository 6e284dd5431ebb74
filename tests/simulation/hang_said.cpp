#include "tests/simulation/hang_said.h"

#include <cstdlib>

#include "src/base/json.h"
#include "src/base/text.h"

namespace elastic::simulation {

bool HangSaid::lacks(std::int64_t rank) const {
  for (const std::string& run : split(without, ',')) {
    const std::size_t dash = run.find('-');
    const std::int64_t first = std::strtoll(run.c_str(), nullptr, 10);
    const std::int64_t last = dash == std::string::npos ? first : std::strtoll(run.c_str() + dash + 1, nullptr, 10);
    if (!run.empty() && first <= rank && rank <= last) return true;
  }
  return false;
}

std::optional<HangSaid> read_report(const std::string& report) {
  const auto json = Json::parse(report, "a report");
  if (!json) return {};
  HangSaid said{.cause = json->text_or_empty("cause"),
                .fault = json->text_or_empty("fault"),
                .action = json->text_or_empty("action"),
                .without = json->text_or_empty("without_evidence")};
  const Json* const culprits = json->find("culprits");
  if (culprits == nullptr || culprits->as_array() == nullptr) return {};
  for (const Json& each : *culprits->as_array())
    said.culprits.push_back({each.find("rank")->as_integer(), each.text_or_empty("node")});
  return said;
}

}  // namespace elastic::simulation
