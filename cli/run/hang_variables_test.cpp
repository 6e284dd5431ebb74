#include "cli/run/hang_variables.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace elastic::run {
namespace {

std::string value(const std::vector<Variable>& variables, std::string_view name) {
  const auto found = std::ranges::find(variables, name, &Variable::first);
  return found == variables.end() ? "" : found->second;
}

TEST_CASE("with --hang=restart workers say more of a hang, at places of this job") {
  const auto variables = hang_variables({}, {.pipes = "/job", .dumps = "/logs/run", .ras_port = 4711});
  CHECK(value(variables, "PYTHONFAULTHANDLER") == "1");
  CHECK(value(variables, "TORCH_NCCL_TRACE_BUFFER_SIZE") == "2000");
  CHECK(value(variables, "TORCH_NCCL_DUMP_ON_TIMEOUT") == "1");
  CHECK(value(variables, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE") == "/logs/run/fr_rank_");
  CHECK(value(variables, "TORCH_FR_DUMP_TEMP_FILE") == "/logs/run/fr_rank_");
  CHECK(value(variables, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE") == "/job/fr_");
  CHECK(value(variables, "NCCL_RAS_ADDR") == "localhost:4711");
  CHECK(variables.size() == 7);
}

TEST_CASE("what the user has set is kept, and what has no place is left to PyTorch and NCCL") {
  const auto variables = hang_variables({"NCCL_RAS_ADDR=localhost:1", "PYTHONFAULTHANDLER="}, {.ras_port = 4711});
  CHECK(value(variables, "NCCL_RAS_ADDR").empty());
  CHECK(value(variables, "PYTHONFAULTHANDLER").empty());
  CHECK(variables.size() == 2);
}

TEST_CASE("where the user has named the place of dumps by either of its variables, neither is set") {
  for (const char* name : {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE"}) {
    const auto variables = hang_variables({std::string(name) + "=/mine_"}, {.dumps = "/logs/run"});
    CHECK(value(variables, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE").empty());
    CHECK(value(variables, "TORCH_FR_DUMP_TEMP_FILE").empty());
  }
}

}  // namespace
}  // namespace elastic::run
