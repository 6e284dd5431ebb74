#include "cli/run/worker_environment.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "src/base/text.h"

namespace elastic::run {
namespace {

// The one device that a worker with a virtual local rank sees, and the variable that listed it.
struct VirtualDevice {
  std::string entry;
  bool from_hip = false;
};

Result<VirtualDevice> virtual_device(const Environment& environment, int local_rank) {
  const auto hip = lookup(environment, "HIP_VISIBLE_DEVICES");
  const auto cuda = lookup(environment, "CUDA_VISIBLE_DEVICES");
  const bool from_hip = hip && !hip->empty();
  const auto& list = from_hip ? hip : cuda;
  if (!list) return VirtualDevice{format("{}", local_rank), false};
  const std::vector<std::string> entries = split(*list, ',');
  if (static_cast<std::size_t>(local_rank) >= entries.size()) {
    return fail(format("{}={}", from_hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES", printable(*list)),
                format("--virtual-local-rank needs a device for each worker, and local rank {} has none", local_rank),
                "list more devices or lower --nproc-per-node");
  }
  return VirtualDevice{std::string(trim(entries[static_cast<std::size_t>(local_rank)])), from_hip};
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
  if (worker.virtual_local_rank) {
    const auto device = virtual_device(worker.environment, place.local_rank);
    if (!device) return std::unexpected(device.error());
    add("CUDA_VISIBLE_DEVICES", device->entry);
    if (device->from_hip) add("HIP_VISIBLE_DEVICES", device->entry);
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
