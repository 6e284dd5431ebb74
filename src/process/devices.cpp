#include "src/process/devices.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "src/base/text.h"
#include "src/process/cpu_quota.h"

namespace elastic::process {
namespace {

namespace fs = std::filesystem;

// The kernel's CPU number limit is 8192 on the largest builds.
constexpr int kMaxCpus = 8192;

// "GPU UUID: \t GPU-5f2a..." in a GPU's information file.
std::string uuid_in(const fs::path& information) {
  std::ifstream file(information);
  std::string line;
  constexpr std::string_view kKey = "GPU UUID:";
  while (std::getline(file, line)) {
    if (line.starts_with(kKey)) return std::string(trim(std::string_view(line).substr(kKey.size())));
  }
  return {};
}

bool is_device_node(const std::string& name) {
  constexpr std::string_view kPrefix = "nvidia";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
         name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
}

// The leading digits of an entry count: CUDA reads "1gpu" as 1.
std::optional<std::int64_t> leading_number(std::string_view entry) {
  const std::size_t end = entry.find_first_not_of("0123456789");
  return parse_int(entry.substr(0, end));
}

std::optional<std::int64_t> index_of(const GpuInventory& inventory, std::string_view entry) {
  if (!entry.starts_with("GPU-") && !entry.starts_with("MIG-")) return leading_number(entry);
  std::optional<std::int64_t> found;
  for (std::size_t i = 0; i < inventory.uuids.size(); ++i) {
    if (!inventory.uuids[i].starts_with(entry)) continue;
    if (found) return {};  // a beginning that two UUIDs share names neither
    found = static_cast<std::int64_t>(i);
  }
  return found;
}

}  // namespace

int usable_cpus(const std::string& root) {
  cpu_set_t* set = CPU_ALLOC(kMaxCpus);
  const std::size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
  CPU_ZERO_S(bytes, set);
  const bool known = sched_getaffinity(0, bytes, set) == 0;
  const double count = known ? CPU_COUNT_S(bytes, set) : 1;
  CPU_FREE(set);
  return std::max(static_cast<int>(std::min(count, cpu_quota(root).value_or(count))), 1);
}

GpuInventory find_gpus(const std::string& root) {
  GpuInventory inventory;
  std::error_code error;
  std::vector<fs::path> by_bus;  // CUDA's order under CUDA_DEVICE_ORDER=PCI_BUS_ID; the count is the same
  for (const auto& entry : fs::directory_iterator(fs::path(root) / "proc/driver/nvidia/gpus", error)) {
    by_bus.push_back(entry.path());
  }
  std::sort(by_bus.begin(), by_bus.end());
  for (const fs::path& gpu : by_bus) {
    ++inventory.count;
    inventory.uuids.push_back(uuid_in(gpu / "information"));
  }
  if (inventory.count > 0) return inventory;
  for (const auto& entry : fs::directory_iterator(fs::path(root) / "dev", error)) {
    if (is_device_node(entry.path().filename())) ++inventory.count;
  }
  return inventory;
}

int visible_gpus(const GpuInventory& inventory, const std::optional<std::string>& cuda_visible_devices) {
  if (!cuda_visible_devices) return inventory.count;
  // Without the driver's files a UUID cannot be looked up: each different one counts as a GPU.
  const bool uuids_known = !inventory.uuids.empty();
  std::set<std::string> seen;
  int visible = 0;
  for (const std::string& part : split(*cuda_visible_devices, ',')) {
    const std::string entry(trim(part));
    const bool by_uuid = entry.starts_with("GPU-") || entry.starts_with("MIG-");
    std::string key = entry;
    if (!by_uuid || uuids_known) {
      const bool mig = entry.starts_with("MIG-");  // an instance: not in the list of whole GPUs
      const auto index = mig ? std::nullopt : index_of(inventory, entry);
      if (!mig && (!index || *index >= inventory.count)) break;
      if (index) key = format("{}", *index);
    }
    if (!seen.insert(key).second) return 0;
    ++visible;
  }
  return uuids_known || inventory.count > 0 ? std::min(visible, std::max(inventory.count, visible)) : 0;
}

}  // namespace elastic::process
