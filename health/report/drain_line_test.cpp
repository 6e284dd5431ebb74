#include "health/report/drain_line.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace elastic::health;

namespace {

const Finding kShm{Severity::kWarning, "/dev/shm is small: 64 MiB", "/dev/shm"};
const Finding kEcc{Severity::kFatal, "ECC errors: 12", "GPU 3", "drain the host"};

}  // namespace

TEST_CASE("the drain line of a node that is fit says healthy, with its warnings behind it") {
  CHECK(drain_line("elastic-run", {.was_checked = true}) == "elastic-run: healthy");
  CHECK(drain_line("elastic-run", {.was_checked = true, .findings = {{Severity::kNote, "driver 570"}, kShm}}) ==
        "elastic-run: healthy; /dev/shm is small: 64 MiB");
  CHECK(drain_line("elastic-run", {.was_checked = true, .others_are_unhealthy = true}) ==
        "elastic-run: healthy; another node or a link is not fit");
}

TEST_CASE("the drain line has the worst finding first, and each once") {
  CHECK(drain_line("elastic-run", {.was_checked = true, .findings = {kShm, kEcc}}) ==
        "elastic-run: ECC errors: 12 (GPU 3); /dev/shm is small: 64 MiB");
  CHECK(drain_line("elastic-run", {.was_checked = true, .flaw = "ECC errors: 12", .findings = {kEcc}}) ==
        "elastic-run: ECC errors: 12 (GPU 3)");
  CHECK(drain_line("elastic-run", {.was_checked = true, .flaw = "its exchange failed", .findings = {kEcc}}) ==
        "elastic-run: its exchange failed; ECC errors: 12 (GPU 3)");
}

TEST_CASE("the drain line of a node that was not checked says why") {
  CHECK(drain_line("elastic-run", {.why_not = "no other node came"}) == "elastic-run: not checked: no other node came");
}

TEST_CASE("the drain line is printable ASCII on one line, of bounded length, and can stand between quotes") {
  const std::string line = drain_line(
      "elastic-run", {.was_checked = true, .flaw = "a \"b\"\n`c` $(d) 'e' \\ \xc3\xa4" + std::string(500, 'x')});
  CHECK(line.size() == kDrainLineBytes);
  CHECK(line.starts_with("elastic-run: a b c ?(d) e ? ??xxx"));
  CHECK(line.ends_with("x..."));
  CHECK(std::ranges::all_of(line, [](char c) { return c >= ' ' && c <= '~'; }));
}

TEST_CASE("what a verdict says of one node is found by its rank") {
  const std::string reason =
      "the check has found unfit nodes or links: node 1 (10.0.0.2): its exchange failed: reset; node 12: it is slow";
  CHECK(flaw_of_node(reason, 1) == "its exchange failed: reset");
  CHECK(flaw_of_node(reason, 12) == "it is slow");
  CHECK(flaw_of_node(reason, 2).empty());
  CHECK(flaw_of_node("found: node 3: it is slow; and 2 more", 3) == "it is slow");
  CHECK(flaw_of_node("", 0).empty());
}
