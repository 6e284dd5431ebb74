#include "src/process/devices.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "src/base/text.h"
#include "src/process/cgroup.h"
#include "src/process/sysfs.h"

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

// The number with which an entry begins, as strtoul() reads it: CUDA takes "1gpu" for 1. -1 where there is none.
std::int64_t ordinal_of(std::string_view entry) {
  const bool has_sign = entry.starts_with('+') || entry.starts_with('-');
  const std::string_view digits = entry.substr(has_sign ? 1 : 0);
  const std::size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  if (end == 0) return -1;
  const std::int64_t number = parse_int(digits.substr(0, end)).value_or(std::numeric_limits<std::int64_t>::max());
  return entry.starts_with('-') ? -number : number;
}

// The index of the GPU whose UUID begins so; none where no UUID does, or several do.
std::optional<std::int64_t> index_of(const GpuInventory& inventory, std::string_view uuid) {
  std::optional<std::int64_t> found;
  for (std::size_t i = 0; i < inventory.uuids.size(); ++i) {
    if (!inventory.uuids[i].starts_with(uuid)) continue;
    if (found) return {};
    found = static_cast<std::int64_t>(i);
  }
  return found;
}

// What CUDA makes of one GPU that it shows.
struct Entry {
  std::optional<std::int64_t> index = {};  // among the host's GPUs; none where that is not known
  bool by_uuid = false;                    // it was named by its UUID
};

bool is_one_twice(const std::vector<std::int64_t>& numbers) {
  return std::set(numbers.begin(), numbers.end()).size() < numbers.size();
}

std::vector<Entry> by_number(const GpuInventory& inventory, const std::string& list) {
  std::vector<std::int64_t> numbers;
  for (const std::string& entry : split(list, ',')) {
    const std::int64_t number = ordinal_of(trim(entry));
    if (number < 0) break;
    numbers.push_back(number);
  }
  if (is_one_twice(numbers)) return {};
  std::vector<Entry> visible;
  for (const std::int64_t number : numbers) {
    if (number >= inventory.count) break;
    visible.push_back({.index = number});
  }
  return visible;
}

// Where UUIDs are not known one cannot be looked up, nor can that of an instance (MIG) anywhere: each counts as a GPU.
std::vector<Entry> by_uuid(const GpuInventory& inventory, const std::string& list, std::string_view prefix) {
  std::vector<std::string> uuids;
  for (const std::string& entry : split(list, ',')) {
    if (std::ranges::find(uuids, entry) != uuids.end()) return {};
    if (!entry.starts_with(prefix)) break;
    uuids.push_back(entry);
  }
  if (inventory.uuids.empty() || prefix == "MIG-") return std::vector<Entry>(uuids.size(), Entry{.by_uuid = true});
  std::vector<Entry> visible;
  std::vector<std::int64_t> numbers;
  for (const std::string& uuid : uuids) {
    const auto index = index_of(inventory, uuid);
    if (!index) break;
    visible.push_back({.index = index, .by_uuid = true});
    numbers.push_back(*index);
  }
  return is_one_twice(numbers) ? std::vector<Entry>() : visible;
}

// The GPUs that CUDA shows with that list. Its beginning says whether it has numbers, UUIDs or instances.
std::vector<Entry> visible_entries(const GpuInventory& inventory, const std::optional<std::string>& list) {
  if (inventory.count == 0) return {};
  if (list && list->starts_with("GPU-")) return by_uuid(inventory, *list, "GPU-");
  if (list && list->starts_with("MIG-")) return by_uuid(inventory, *list, "MIG-");
  if (list) return by_number(inventory, *list);
  std::vector<Entry> visible;
  for (std::int64_t index = 0; index < inventory.count; ++index) visible.push_back({.index = index});
  return visible;
}

// The numbers N of <root>/dev/nvidiaN, as text.
std::set<std::string> device_nodes(const std::string& root) {
  constexpr std::string_view kPrefix = "nvidia";
  std::set<std::string> numbers;
  for (const fs::path& node : sorted_entries(fs::path(root) / "dev")) {
    const std::string name = node.filename();
    if (!name.starts_with(kPrefix)) continue;
    const std::string number = name.substr(kPrefix.size());
    if (!number.empty() && number.find_first_not_of("0123456789") == std::string::npos) numbers.insert(number);
  }
  return numbers;
}

// A container may have the device files of some GPUs only, and sees all of the host's among the driver's files. The
// driver may not tell the UUID of one that no program has used yet.
GpuInventory gpus_of_driver(const std::string& root, const std::set<std::string>& nodes) {
  GpuInventory inventory;
  std::set<std::string> models;
  bool are_uuids_known = true;
  for (const fs::path& gpu : sorted_entries(fs::path(root) / "proc/driver/nvidia/gpus")) {
    const std::string number = value_in(gpu / "information", "Device Minor:");
    if (!nodes.empty() && !number.empty() && !nodes.contains(number)) continue;
    const std::string uuid = value_in(gpu / "information", "GPU UUID:");
    are_uuids_known = are_uuids_known && !uuid.empty() && !uuid.contains('?');
    ++inventory.count;
    inventory.uuids.push_back(uuid);
    inventory.addresses.push_back(lower(gpu.filename().string()));
    models.insert(value_in(gpu / "information", "Model:"));
  }
  if (!are_uuids_known) inventory.uuids.clear();
  inventory.are_alike = models.size() < 2;
  return inventory;
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
  const std::set<std::string> nodes = device_nodes(root);
  GpuInventory inventory = gpus_of_driver(root, nodes);
  if (inventory.count > 0 || nodes.empty()) return inventory;
  inventory.count = static_cast<int>(nodes.size());
  // The same on the bus.
  inventory.addresses = gpus_on_bus(root);
  if (inventory.addresses.size() != nodes.size()) inventory.addresses.clear();
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
