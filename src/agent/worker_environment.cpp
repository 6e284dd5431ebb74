#include "src/agent/worker_environment.h"

#include <algorithm>
#include <map>

#include "src/base/text.h"

namespace elastic::agent {
namespace {

constexpr std::string_view kMacro = "local_rank";

bool continues_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The length of "${local_rank}" or "$local_rank" at the start of `text`, or 0.
std::size_t macro_length(std::string_view text) {
  if (text.substr(1).starts_with('{')) {
    const bool closed = text.substr(2).starts_with(kMacro) && text.substr(2 + kMacro.size()).starts_with('}');
    return closed ? kMacro.size() + 3 : 0;
  }
  if (!text.substr(1).starts_with(kMacro)) return 0;
  const std::string_view rest = text.substr(1 + kMacro.size());
  return rest.empty() || !continues_identifier(rest[0]) ? kMacro.size() + 1 : 0;
}

std::string expand(std::string_view text, const std::string& local_rank) {
  std::string out;
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    out += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar);
    std::size_t taken = text.starts_with("$$") ? 2 : 1;
    if (const std::size_t macro = macro_length(text)) {
      out += local_rank;
      taken = macro;
    } else {
      out += text.substr(0, taken);
    }
    text.remove_prefix(taken);
  }
  return out;
}

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
    return fail(format("{}={}", from_hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES",
                       printable(*list)),
                format("--virtual-local-rank needs a device for each worker, and local rank {} has none",
                       local_rank),
                "list more devices or lower --nproc-per-node");
  }
  return VirtualDevice{std::string(trim(entries[static_cast<std::size_t>(local_rank)])), from_hip};
}

}  // namespace

std::optional<std::string> lookup(const Environment& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

Result<std::vector<Variable>> worker_variables(const WorkerTemplate& worker, const WorkerPlace& place) {
  const auto number = [](int value) { return format("{}", value); };
  const protocol::NodePlace& node = place.node;
  std::vector<Variable> out{
      {"LOCAL_RANK", number(worker.virtual_local_rank ? 0 : place.local_rank)},
      {"RANK", number(node.base_rank + place.local_rank)},
      {"GROUP_RANK", number(node.node_rank)},
      {"ROLE_RANK", number(node.base_role_rank + place.local_rank)},
      {"ROLE_NAME", worker.role},
      {"LOCAL_WORLD_SIZE", number(worker.local_world_size)},
      {"WORLD_SIZE", number(node.world_size)},
      {"GROUP_WORLD_SIZE", number(node.node_count)},
      {"ROLE_WORLD_SIZE", number(node.role_world_size)},
      {"MASTER_ADDR", place.master_addr},
      {"MASTER_PORT", place.master_port},
      {"TORCHELASTIC_RESTART_COUNT", number(place.restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", number(place.max_restarts)},
      {"TORCHELASTIC_RUN_ID", worker.run_id},
      {"TORCHELASTIC_USE_AGENT_STORE", worker.use_agent_store ? "True" : "False"},
      {"TORCHELASTIC_ERROR_FILE", place.error_file},
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", worker.signals_to_handle},
  };
  if (!lookup(worker.environment, "TORCH_NCCL_ASYNC_ERROR_HANDLING")) {
    out.emplace_back("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  }
  // torchrun's rule: one thread each where several workers share the CPUs and the user has not chosen.
  if (worker.local_world_size > 1 && !lookup(worker.environment, "OMP_NUM_THREADS")) {
    out.emplace_back("OMP_NUM_THREADS", "1");
  }
  if (worker.virtual_local_rank) {
    const auto device = virtual_device(worker.environment, place.local_rank);
    if (!device) return std::unexpected(device.error());
    out.emplace_back("CUDA_VISIBLE_DEVICES", device->entry);
    if (device->from_hip) out.emplace_back("HIP_VISIBLE_DEVICES", device->entry);
  }
  return out;
}

Environment with_variables(const Environment& base, const std::vector<Variable>& variables) {
  std::map<std::string_view, const std::string*> ours;
  for (const auto& [name, value] : variables) ours[name] = &value;
  Environment out;
  out.reserve(base.size() + variables.size());
  for (const std::string& entry : base) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (!ours.contains(name)) out.push_back(entry);
  }
  for (const auto& [name, value] : variables) out.push_back(name + "=" + value);
  return out;
}

std::vector<std::string> worker_arguments(const WorkerTemplate& worker, int local_rank) {
  const std::string number = format("{}", local_rank);
  std::vector<std::string> out;
  out.reserve(worker.arguments.size());
  for (const std::string& argument : worker.arguments) out.push_back(expand(argument, number));
  return out;
}

}  // namespace elastic::agent
