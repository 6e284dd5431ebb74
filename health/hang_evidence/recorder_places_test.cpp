#include "health/hang_evidence/recorder_facts.h"

#include <doctest/doctest.h>

namespace elastic::hang {

using Files = std::vector<std::string>;

TEST_CASE("the recorder is asked only by a pipe that the user has named, the newer name first") {
  CHECK(!recorder_places({"HOME=/home/u"}).pipe);
  CHECK(!recorder_places({"TORCH_NCCL_DEBUG_INFO_PIPE_FILE="}).pipe);
  CHECK(recorder_places({"TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/run/old_"}).pipe == "/run/old_");
  CHECK(
      recorder_places({"TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/run/old_", "TORCH_FR_DEBUG_INFO_PIPE_FILE=/run/new_"}).pipe ==
      "/run/new_");
}

TEST_CASE("a control server is where the environment that a process has begun with names one") {
  const auto named = [](std::string_view text) { return recorder_places(environment_in(text)).control; };
  constexpr std::string_view kNamed("HOME=/home/u\0TORCH_WORKER_SERVER_SOCKET=/run/a b\0LANG=C\0", 56);
  CHECK(named(kNamed) == "/run/a b");
  CHECK(!named(""));
  CHECK(!named("TORCH_WORKER_SERVER_SOCKET="));
  CHECK(!named("XTORCH_WORKER_SERVER_SOCKET=/run/a"));
}

TEST_CASE("dumps are where the user has said, else in PyTorch's own places") {
  CHECK(
      recorder_places({"HOME=/home/u", "TORCH_FR_DUMP_TEMP_FILE=/logs/a_", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/logs/b_"})
          .files == Files{"/logs/a_", "/logs/b_"});
  CHECK(recorder_places({"HOME=/home/u"}).files ==
        Files{"/home/u/.cache/torch/comm_lib_trace_rank_", "/tmp/nccl_trace_rank_"});
  CHECK(recorder_places({"HOME=/home/u", "XDG_CACHE_HOME=/cache"}).files ==
        Files{"/cache/torch/comm_lib_trace_rank_", "/tmp/nccl_trace_rank_"});
  CHECK(recorder_places({}).files == Files{"/tmp/nccl_trace_rank_"});
}

}  // namespace elastic::hang
