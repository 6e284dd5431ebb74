#include "src/output/lines/prefix.h"

#include <doctest/doctest.h>

using namespace elastic::output;

TEST_CASE("a line's prefix is torchrun's where no template is given") {
  CHECK(line_prefix("", {.role_name = "trainer", .rank = 12, .local_rank = 4, .hostname = "n1"}) == "[trainer4]:");
}

TEST_CASE("a template replaces the prefix as it is, with the four macros") {
  const PrefixValues values{.role_name = "default", .rank = 12, .local_rank = 4, .hostname = "node-1"};
  CHECK(line_prefix("${hostname}:$rank/${local_rank} ${role_name}> ", values) == "node-1:12/4 default> ");
  CHECK(line_prefix("plain", values) == "plain");
  CHECK(line_prefix("$$rank ${world_size}", values) == "$rank ${world_size}");
}
