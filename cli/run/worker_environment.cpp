#include "cli/run/worker_environment.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "src/base/text.h"

namespace elastic::run {
namespace {

constexpr const char* kCuda = "CUDA_VISIBLE_DEVICES";
constexpr const char* kHip = "HIP_VISIBLE_DEVICES";
constexpr const char* kRocr = "ROCR_VISIBLE_DEVICES";
constexpr const char* kIntelsMask = "ZE_AFFINITY_MASK";
constexpr const char* kAscend = "ASCEND_RT_VISIBLE_DEVICES";

// A worker's entry of a list of devices.
Result<std::string> entry_of(const char* variable, const std::string& list, int local_rank) {
  const std::vector<std::string> entries = split(list, ',');
  if (static_cast<std::size_t>(local_rank) >= entries.size()) {
    return fail(format("{}={}", variable, printable(list)),
                format("--virtual-local-rank needs a device for each worker, and local rank {} has none", local_rank),
                "list more devices or lower --nproc-per-node");
  }
  return std::string(trim(entries[static_cast<std::size_t>(local_rank)]));
}

// The variables by which a worker with a virtual local rank sees one device only. Those of CUDA and HIP are torchrun's;
// docs/environment.md has the rules of the others.
Result<std::vector<Variable>> one_device(const WorkerTemplate& worker, int local_rank) {
  const auto list_in = [&](const char* variable) {
    const auto list = lookup(worker.environment, variable);
    return list && !list->empty() ? list : std::nullopt;
  };
  const auto hip = list_in(kHip);
  const auto cuda = lookup(worker.environment, kCuda);
  const bool is_amd = worker.devices == Devices::kAmd;
  Result<std::string> device = format("{}", local_rank);
  if (hip) {
    device = entry_of(kHip, *hip, local_rank);
  } else if (cuda) {
    device = entry_of(kCuda, *cuda, local_rank);
  } else if (const auto rocr = is_amd ? list_in(kRocr) : std::nullopt) {
    // HIP counts what this leaves from 0 on.
    if (const auto entry = entry_of(kRocr, *rocr, local_rank); !entry) return std::unexpected(entry.error());
  }
  if (!device) return std::unexpected(device.error());
  std::vector<Variable> out{{kCuda, *device}};
  if (hip || is_amd) out.emplace_back(kHip, *device);
  if (is_amd || worker.devices == Devices::kCuda) return out;
  const char* const own = worker.devices == Devices::kIntel ? kIntelsMask : kAscend;
  const auto list = list_in(own);
  const auto entry = list ? entry_of(own, *list, local_rank) : Result<std::string>(format("{}", local_rank));
  if (!entry) return std::unexpected(entry.error());
  out.emplace_back(own, *entry);
  return out;
}

}  // namespace

Result<std::vector<Variable>> worker_variables(const WorkerTemplate& worker, const WorkerPlace& place) {
  const protocol::NodePlace& node = place.node;
  std::vector<Variable> out;
  out.reserve(24);
  const auto add = [&out](std::string_view name, std::string_view value) { out.emplace_back(name, value); };
  const auto add_number = [&out](std::string_view name, int value) { out.emplace_back(name, std::to_string(value)); };
  add_number("LOCAL_RANK", worker.virtual_local_rank ? 0 : place.local_rank);
  add_number("RANK", node.base_rank + place.local_rank);
  add_number("GROUP_RANK", node.node_rank);
  add_number("ROLE_RANK", node.base_role_rank + place.local_rank);
  add("ROLE_NAME", worker.role);
  add_number("LOCAL_WORLD_SIZE", worker.local_world_size);
  add_number("WORLD_SIZE", node.world_size);
  add_number("GROUP_WORLD_SIZE", node.node_count);
  add_number("ROLE_WORLD_SIZE", node.role_world_size);
  add("MASTER_ADDR", place.master_addr);
  add("MASTER_PORT", place.master_port);
  add_number("TORCHELASTIC_RESTART_COUNT", place.restart_count);
  add_number("TORCHELASTIC_MAX_RESTARTS", place.max_restarts);
  add("TORCHELASTIC_RUN_ID", worker.run_id);
  add("TORCHELASTIC_USE_AGENT_STORE", worker.use_agent_store ? "True" : "False");
  add("TORCHELASTIC_ERROR_FILE", place.error_file);
  add("TORCHELASTIC_SIGNALS_TO_HANDLE", worker.signals_to_handle);
  add("ELASTIC_RUN_FENCE", place.fence);
  for (const auto& [name, value] : place.channels) add(name, value);
  for (const auto& [name, value] : place.hang) add(name, value);
  if (!lookup(worker.environment, "TORCH_NCCL_ASYNC_ERROR_HANDLING")) {
    add("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  }
  // torchrun's rule: one thread each if several workers share the CPUs and the user has not set the number.
  if (worker.local_world_size > 1 && !lookup(worker.environment, "OMP_NUM_THREADS")) {
    add("OMP_NUM_THREADS", "1");
  }
  if (worker.training_port != 0)
    add_number("HCCL_IF_BASE_PORT", place.training_port != 0 ? place.training_port : worker.training_port);
  if (worker.virtual_local_rank) {
    const auto device = one_device(worker, place.local_rank);
    if (!device) return std::unexpected(device.error());
    for (const auto& [name, value] : *device) add(name, value);
  }
  return out;
}

Environment without_variables(const Environment& base, const std::vector<Variable>& variables) {
  std::set<std::string_view> names;
  for (const auto& [name, value] : variables) names.insert(name);
  Environment out;
  std::copy_if(base.begin(), base.end(), std::back_inserter(out), [&](const std::string& entry) {
    return !names.contains(std::string_view(entry).substr(0, entry.find('=')));
  });
  return out;
}

Environment as_environment(const std::vector<Variable>& variables) {
  Environment out;
  out.reserve(variables.size());
  for (const auto& [name, value] : variables) out.push_back(name + "=" + value);
  return out;
}

std::vector<std::string> worker_arguments(const WorkerTemplate& worker, int local_rank) {
  const std::string number = format("{}", local_rank);
  std::vector<std::string> out;
  out.reserve(worker.arguments.size());
  for (const std::string& argument : worker.arguments) {
    out.push_back(expand_macros(argument, {{"local_rank", number}}, TwoDollars::kTwo));
  }
  return out;
}

}  // namespace elastic::run
