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

// What a GPU's information file has under that key: "GPU UUID: \t GPU-5f2a...".
std::string value_in(const fs::path& information, std::string_view key) {
  std::ifstream file(information);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(key)) return std::string(trim(std::string_view(line).substr(key.size())));
  }
  return {};
}

std::string word_in(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

std::vector<fs::path> sorted_entries(const fs::path& directory) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// NVIDIA's display controllers and accelerators ("3D controllers") among the PCI devices.
std::vector<std::string> gpus_on_bus(const std::string& root) {
  std::vector<std::string> addresses;
  for (const fs::path& device : sorted_entries(fs::path(root) / "sys/bus/pci/devices")) {
    if (word_in(device / "vendor") != "0x10de") continue;
    const std::string kind = word_in(device / "class");
    if (kind.starts_with("0x0300") || kind.starts_with("0x0302")) addresses.push_back(device.filename());
  }
  return addresses;
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

// What CUDA makes of one GPU that it shows.
struct Entry {
  std::optional<std::int64_t> index;  // among the host's GPUs; nothing where that is not known
  bool by_uuid = false;               // it was named by its UUID
};

// The GPUs that CUDA shows with that list. Without the driver's files a UUID cannot be looked up, nor can that of an
// instance (MIG) with them: each different one counts as a GPU.
std::vector<Entry> visible_entries(const GpuInventory& inventory, const std::optional<std::string>& list) {
  std::vector<Entry> visible;
  if (inventory.count == 0) return visible;
  if (!list) {
    for (std::int64_t index = 0; index < inventory.count; ++index) visible.push_back({.index = index});
    return visible;
  }
  std::set<std::string> seen;
  for (const std::string& part : split(*list, ',')) {
    const std::string text(trim(part));
    const bool is_instance = text.starts_with("MIG-");
    Entry entry{.index = {}, .by_uuid = is_instance || text.starts_with("GPU-")};
    if (!entry.by_uuid || (!inventory.uuids.empty() && !is_instance)) {
      entry.index = index_of(inventory, text);
      if (!entry.index || *entry.index >= inventory.count) break;
    }
    if (!seen.insert(entry.index ? format("{}", *entry.index) : text).second) return {};
    visible.push_back(entry);
  }
  return visible;
}

}  // namespace

std::vector<int> allowed_cpus() {
  cpu_set_t* set = CPU_ALLOC(kMaxCpus);
  const std::size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
  CPU_ZERO_S(bytes, set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, bytes, set) == 0) {
    for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set)) cpus.push_back(cpu);
    }
  }
  CPU_FREE(set);
  return cpus;
}

int usable_cpus(const std::string& root) {
  const auto count = static_cast<double>(std::max<std::size_t>(allowed_cpus().size(), 1));
  return std::max(static_cast<int>(std::min(count, cpu_quota(root).value_or(count))), 1);
}

GpuInventory find_gpus(const std::string& root) {
  GpuInventory inventory;
  std::set<std::string> models;
  for (const fs::path& gpu : sorted_entries(fs::path(root) / "proc/driver/nvidia/gpus")) {
    ++inventory.count;
    inventory.uuids.push_back(value_in(gpu / "information", "GPU UUID:"));
    inventory.addresses.push_back(lower(gpu.filename().string()));
    models.insert(value_in(gpu / "information", "Model:"));
  }
  inventory.are_alike = models.size() < 2;
  if (inventory.count > 0) return inventory;
  for (const fs::path& node : sorted_entries(fs::path(root) / "dev")) {
    if (is_device_node(node.filename())) ++inventory.count;
  }
  if (inventory.count == 0) return inventory;
  // A container may have the device files of some GPUs only, and sees all of the host's on the bus.
  inventory.addresses = gpus_on_bus(root);
  if (inventory.addresses.size() != static_cast<std::size_t>(inventory.count)) inventory.addresses.clear();
  return inventory;
}

int visible_gpus(const GpuInventory& inventory, const std::optional<std::string>& cuda_visible_devices) {
  return static_cast<int>(visible_entries(inventory, cuda_visible_devices).size());
}

std::vector<VisibleGpu> find_visible_gpus(const GpuInventory& inventory,
                                          const std::optional<std::string>& cuda_visible_devices,
                                          const std::optional<std::string>& cuda_device_order) {
  const bool order_known = inventory.are_alike || cuda_device_order == "PCI_BUS_ID";
  std::vector<VisibleGpu> visible;
  for (const Entry& entry : visible_entries(inventory, cuda_visible_devices)) {
    if (!entry.index) {
      visible.push_back(
          {.why = "which GPU has the UUID in CUDA_VISIBLE_DEVICES is not known without NVIDIA's library"});
    } else if (!entry.by_uuid && !order_known) {
      visible.push_back(
          {.why = "the GPUs are of several models, which CUDA orders by speed; set CUDA_DEVICE_ORDER=PCI_BUS_ID"});
    } else if (inventory.addresses.empty()) {
      visible.push_back({.why = "/proc/driver/nvidia/gpus is not there, and /dev has not all GPUs of the PCI bus"});
    } else {
      visible.push_back({.address = inventory.addresses.at(static_cast<std::size_t>(*entry.index))});
    }
  }
  return visible;
}

}  // namespace elastic::process
