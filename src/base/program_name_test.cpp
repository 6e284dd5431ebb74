#include "src/base/program_name.h"

#include <doctest/doctest.h>

using namespace elastic;

TEST_CASE("the program speaks by the name of the launcher in whose place it was started, else by its own") {
  CHECK(program_name() == "elastic-run");
  set_program_name("/opt/venv/bin/torchrun");
  CHECK(program_name() == "torchrun");
  CHECK(in_our_name("elastic-run --help, _elastic_run") == "torchrun --help, _torchrun");
  set_program_name("dlrover-run");
  CHECK(program_name() == "dlrover-run");
  CHECK(in_our_name("elastic-run --help, _elastic_run") == "dlrover-run --help, _dlrover_run");
  for (const char* other : {"/tmp/torchrun-2", "torchrun/run", "", "elastic-run"}) {
    set_program_name(other);
    CHECK(program_name() == "elastic-run");
    CHECK(in_our_name("elastic-run --help") == "elastic-run --help");
  }
}
