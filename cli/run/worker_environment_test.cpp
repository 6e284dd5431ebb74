#include "cli/run/worker_environment.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

using namespace elastic;
using namespace elastic::run;

namespace {

WorkerTemplate four_workers() {
  return {.arguments = {"python", "train.py"},
          .environment = {"PATH=/bin"},
          .run_id = "none",
          .role = "default",
          .local_world_size = 4,
          .signals_to_handle = "SIGTERM"};
}

WorkerPlace place_of(int local_rank) {
  return {.local_rank = local_rank,
          .restart_count = 2,
          .max_restarts = 3,
          .node = {1, 2, 4, 8, 4, 8},
          .master_addr = "127.0.0.1",
          .master_port = "4000",
          .error_file = "/logs/error.json",
          .fence = "1795447531123-0000000001-0000000002",
          .channels = {{"ELASTIC_RUN_PROGRESS", "/job/progress_3"}}};
}

std::map<std::string, std::string> variables(const WorkerTemplate& worker, int local_rank) {
  const auto list = worker_variables(worker, place_of(local_rank));
  REQUIRE(list.has_value());
  return {list->begin(), list->end()};
}

std::string expanded(const std::string& argument) {
  WorkerTemplate worker = four_workers();
  worker.arguments = {argument};
  return worker_arguments(worker, 3)[0];
}

}  // namespace

TEST_CASE("a worker gets torchrun's variables for its place, and the fence of its round") {
  const std::map<std::string, std::string> expected{
      {"LOCAL_RANK", "3"},
      {"RANK", "7"},
      {"GROUP_RANK", "1"},
      {"ROLE_RANK", "7"},
      {"ROLE_NAME", "default"},
      {"LOCAL_WORLD_SIZE", "4"},
      {"WORLD_SIZE", "8"},
      {"GROUP_WORLD_SIZE", "2"},
      {"ROLE_WORLD_SIZE", "8"},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", "4000"},
      {"TORCHELASTIC_RESTART_COUNT", "2"},
      {"TORCHELASTIC_MAX_RESTARTS", "3"},
      {"TORCHELASTIC_RUN_ID", "none"},
      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
      {"TORCHELASTIC_ERROR_FILE", "/logs/error.json"},
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM"},
      {"ELASTIC_RUN_FENCE", "1795447531123-0000000001-0000000002"},
      {"ELASTIC_RUN_PROGRESS", "/job/progress_3"},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
      {"OMP_NUM_THREADS", "1"},
  };
  CHECK(variables(four_workers(), 3) == expected);
}

TEST_CASE("a lone worker's OMP_NUM_THREADS is left unset, and the user's choice is left alone") {
  WorkerTemplate worker = four_workers();
  worker.local_world_size = 1;
  CHECK(!variables(worker, 0).contains("OMP_NUM_THREADS"));
  worker = four_workers();
  worker.environment = {"OMP_NUM_THREADS=6", "TORCH_NCCL_ASYNC_ERROR_HANDLING=0"};
  CHECK(!variables(worker, 0).contains("OMP_NUM_THREADS"));
  CHECK(!variables(worker, 0).contains("TORCH_NCCL_ASYNC_ERROR_HANDLING"));
}

TEST_CASE("a virtual local rank is 0 and sees one device, the one at its place in the list") {
  WorkerTemplate worker = four_workers();
  worker.virtual_local_rank = true;
  CHECK(variables(worker, 3).at("LOCAL_RANK") == "0");
  CHECK(variables(worker, 3).at("RANK") == "7");
  CHECK(variables(worker, 3).at("CUDA_VISIBLE_DEVICES") == "3");
  worker.environment = {"CUDA_VISIBLE_DEVICES=4, 5,6, GPU-x"};
  CHECK(variables(worker, 1).at("CUDA_VISIBLE_DEVICES") == "5");
  CHECK(variables(worker, 3).at("CUDA_VISIBLE_DEVICES") == "GPU-x");
  CHECK(!variables(worker, 3).contains("HIP_VISIBLE_DEVICES"));
  worker.environment = {"CUDA_VISIBLE_DEVICES=0,1,2,3", "HIP_VISIBLE_DEVICES=7,6,5,4"};
  CHECK(variables(worker, 0).at("CUDA_VISIBLE_DEVICES") == "7");
  CHECK(variables(worker, 0).at("HIP_VISIBLE_DEVICES") == "7");
  worker.environment = {"CUDA_VISIBLE_DEVICES=0,1,2,3", "HIP_VISIBLE_DEVICES="};
  CHECK(variables(worker, 2).at("CUDA_VISIBLE_DEVICES") == "2");
}

TEST_CASE("with devices of AMD, Intel or Ascend a virtual local rank has one in the variable of their runtime, too") {
  WorkerTemplate worker;
  worker.virtual_local_rank = true;
  worker.local_world_size = 2;
  // The value of rank 1; empty: it is not among the variables that are set.
  const auto value = [&](Devices devices, Environment environment, const std::string& name) {
    worker.devices = devices;
    worker.environment = std::move(environment);
    const auto all = variables(worker, 1);
    return all.contains(name) ? all.at(name) : "";
  };
  CHECK(value(Devices::kAmd, {}, "HIP_VISIBLE_DEVICES") == "1");
  CHECK(value(Devices::kAmd, {"CUDA_VISIBLE_DEVICES=4,5"}, "HIP_VISIBLE_DEVICES") == "5");
  CHECK(value(Devices::kAmd, {"CUDA_VISIBLE_DEVICES=4,5", "HIP_VISIBLE_DEVICES=6,7"}, "HIP_VISIBLE_DEVICES") == "7");
  // HIP numbers what ROCR leaves it.
  CHECK(value(Devices::kAmd, {"ROCR_VISIBLE_DEVICES=4,5"}, "HIP_VISIBLE_DEVICES") == "1");
  CHECK(value(Devices::kAmd, {"ROCR_VISIBLE_DEVICES=4,5"}, "CUDA_VISIBLE_DEVICES") == "1");
  CHECK(value(Devices::kAmd, {"ROCR_VISIBLE_DEVICES=4,5"}, "ROCR_VISIBLE_DEVICES").empty());
  CHECK(value(Devices::kIntel, {}, "ZE_AFFINITY_MASK") == "1");
  CHECK(value(Devices::kIntel, {"ZE_AFFINITY_MASK=0.0, 0.1"}, "ZE_AFFINITY_MASK") == "0.1");
  CHECK(value(Devices::kIntel, {"ZE_AFFINITY_MASK="}, "ZE_AFFINITY_MASK") == "1");
  CHECK(value(Devices::kIntel, {}, "CUDA_VISIBLE_DEVICES") == "1");
  CHECK(value(Devices::kAscend, {}, "ASCEND_RT_VISIBLE_DEVICES") == "1");
  CHECK(value(Devices::kAscend, {"ASCEND_RT_VISIBLE_DEVICES=3,4"}, "ASCEND_RT_VISIBLE_DEVICES") == "4");
  for (const char* other : {"HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "ASCEND_RT_VISIBLE_DEVICES"}) {
    CAPTURE(other);
    CHECK(value(Devices::kCuda, {"ZE_AFFINITY_MASK=2,3", "ROCR_VISIBLE_DEVICES=0"}, other).empty());
  }
}

TEST_CASE("HCCL_IF_BASE_PORT is the port that the nodes have agreed on, or else the start") {
  WorkerTemplate worker;
  CHECK(!variables(worker, 0).contains("HCCL_IF_BASE_PORT"));
  worker.training_port = 60'000;
  CHECK(variables(worker, 0).at("HCCL_IF_BASE_PORT") == "60000");
  WorkerPlace place = place_of(0);
  place.training_port = 60'016;
  const auto list = worker_variables(worker, place);
  REQUIRE(list);
  CHECK(std::ranges::count(*list, Variable("HCCL_IF_BASE_PORT", "60016")) == 1);
}

TEST_CASE("a virtual local rank without a device is an error that names the list") {
  WorkerTemplate worker = four_workers();
  worker.virtual_local_rank = true;
  worker.environment = {"CUDA_VISIBLE_DEVICES=0,1"};
  const auto bad = worker_variables(worker, place_of(2));
  REQUIRE(!bad.has_value());
  CHECK(bad.error().what == "CUDA_VISIBLE_DEVICES=0,1");
}

TEST_CASE("variables replace those of the same name and leave the others as they are") {
  const std::vector<Variable> variables{{"RANK", "0"}, {"A", ""}};
  CHECK(without_variables({"A=1", "RANK=9", "B=x=y", "AB=2"}, variables) == Environment{"B=x=y", "AB=2"});
  CHECK(as_environment(variables) == Environment{"RANK=0", "A="});
  CHECK(lookup({"AB=1", "A=2=3"}, "A") == "2=3");
  CHECK(!lookup({"AB=1"}, "A"));
  CHECK(lookup({"A="}, "A") == "");
}

TEST_CASE("the local rank stands in arguments where its macro does, and other dollars stay") {
  CHECK(expanded("out-${local_rank}.txt") == "out-3.txt");
  CHECK(expanded("$local_rank/$local_rank") == "3/3");
  CHECK(expanded("$local_ranks ${local_rank ${local_rankx} $LOCAL_RANK $5 $") ==
        "$local_ranks ${local_rank ${local_rankx} $LOCAL_RANK $5 $");
  CHECK(expanded("a$$b$${local_rank}") == "a$$b$${local_rank}");
}
