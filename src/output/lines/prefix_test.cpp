#include "src/output/lines/line_assembler.h"

#include <doctest/doctest.h>

using namespace elastic::output;

TEST_CASE("the default template makes torchrun's prefix, and an empty one none") {
  const PrefixValues values{.role_name = "trainer", .rank = 12, .local_rank = 4, .hostname = "n1"};
  CHECK(line_prefix(kDefaultLinePrefix, values) == "[trainer4]:");
  CHECK(line_prefix("", values).empty());
}

TEST_CASE("a template replaces the prefix as it is, with the four macros") {
  const PrefixValues values{.role_name = "default", .rank = 12, .local_rank = 4, .hostname = "node-1"};
  CHECK(line_prefix("${hostname}:$rank/${local_rank} ${role_name}> ", values) == "node-1:12/4 default> ");
  CHECK(line_prefix("plain", values) == "plain");
  CHECK(line_prefix("$$rank ${world_size}", values) == "$rank ${world_size}");
}
