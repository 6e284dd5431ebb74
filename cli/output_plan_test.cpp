#include "cli/output_plan.h"

#include <doctest/doctest.h>

#include <vector>

using namespace elastic::cli;
using namespace elastic::output;

TEST_CASE("where a stream goes is said in a word where all ranks are alike, and by rank where they differ") {
  std::vector<OutputFlags> ranks(6);
  CHECK(where_it_goes(ranks, kStdoutBit, true) == "console");
  for (OutputFlags& flags : ranks) flags.tee = kStdoutBit;
  CHECK(where_it_goes(ranks, kStdoutBit, true) == "log file and console");
  CHECK(where_it_goes(ranks, kStderrBit, true) == "console");
  CHECK(where_it_goes(ranks, kStdoutBit, false) == "console");
  ranks[1].shown = ranks[2].shown = ranks[4].shown = false;
  CHECK(where_it_goes(ranks, kStdoutBit, true) == "local ranks 0, 3, 5: log file and console; 1-2, 4: log file");
  CHECK(where_it_goes(ranks, kStderrBit, true) ==
        "local ranks 0, 3, 5: console; 1-2, 4: nowhere (--local-ranks-filter)");
  ranks[3] = {.redirects = kStderrBit};
  CHECK(where_it_goes(ranks, kStderrBit, true) ==
        "local ranks 0, 5: console; 1-2, 4: nowhere (--local-ranks-filter); 3: log file");
  std::vector<OutputFlags> many(13);
  many[12].redirects = kStdoutBit;
  CHECK(where_it_goes(many, kStdoutBit, true) == "local ranks 0-11: console; 12: log file");
}
