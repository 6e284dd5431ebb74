#include "rendezvous/coordinator/silent_sections.h"

#include <doctest/doctest.h>

namespace elastic::coordinator {
namespace {

constexpr auto kAll = [](protocol::AgentId) { return true; };

}  // namespace

TEST_CASE("the section is that of the rank that is silent the longest, as its node has told last") {
  SilentSections sections;
  CHECK(sections.longest(kAll) == nullptr);
  sections.heard(1, {.since_ms = 200, .rank = 3, .section = "step"});
  sections.heard(2, {.since_ms = 100, .rank = 5, .section = "checkpointing"});
  REQUIRE(sections.longest(kAll) != nullptr);
  CHECK(sections.longest(kAll)->section == "checkpointing");
  CHECK(sections.longest(kAll)->rank == 5);
  sections.heard(2, {.since_ms = 300, .rank = 5, .section = "step"});
  CHECK(sections.longest(kAll)->rank == 3);
  CHECK(sections.longest([](protocol::AgentId agent) { return agent != 1; })->rank == 5);  // node 1 is done
  sections.clear();
  CHECK(sections.longest(kAll) == nullptr);
}

TEST_CASE("two ranks that are silent since the same moment are two") {
  SilentSections sections;
  sections.heard(1, {.since_ms = 100, .rank = 0, .section = "a"});
  sections.heard(2, {.since_ms = 100, .rank = 1, .section = "b"});
  sections.heard(1, {.since_ms = 200, .rank = 0, .section = ""});
  CHECK(sections.longest(kAll)->section == "b");
}

}  // namespace elastic::coordinator
