#include "src/process/other_devices.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "src/base/text.h"
#include "src/process/sysfs.h"

namespace elastic::process {
namespace {

namespace fs = std::filesystem;

bool may_open(const fs::path& device) { return access(device.c_str(), R_OK | W_OK) == 0; }

template <class Number>
std::optional<Number> number_in(std::string_view text, int base = 10) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

// The value of a line "unique_id 1234567890".
std::uint64_t property_in(const fs::path& properties, std::string_view key) {
  std::ifstream file(properties);
  std::string name;
  std::uint64_t value = 0;
  while (file >> name >> value) {
    if (name == key) return value;
  }
  return 0;
}

// The kernel's number of a PCI device has its bus, its device and its function in 8, 5 and 3 bits.
std::string address_in(const fs::path& properties) {
  const std::uint64_t location = property_in(properties, "location_id");
  return format("{:04x}:{:02x}:{:02x}.{:x}", property_in(properties, "domain"), location >> 8 & 0xff,
                location >> 3 & 0x1f, location & 7);
}

// The names in a directory that are this prefix and a number.
std::vector<std::string> numbered(const fs::path& directory, std::string_view prefix) {
  std::vector<std::string> names;
  for (const fs::path& path : sorted_entries(directory)) {
    const std::string name = path.filename();
    if (name.starts_with(prefix) && number_in<unsigned>(std::string_view(name).substr(prefix.size())))
      names.push_back(name);
  }
  return names;
}

// The GPU of ROCR_VISIBLE_DEVICES that an entry names: by its number in C's spelling, or by the beginning of its UUID.
std::optional<std::size_t> index_of(const GpuInventory& gpus, const std::string& entry) {
  if (entry.starts_with('g') || entry.starts_with('G')) {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; entry.size() >= 5 && i < gpus.uuids.size(); ++i) {
      if (!lower(gpus.uuids[i]).starts_with(lower(entry))) continue;
      if (found) return {};
      found = i;
    }
    return found;
  }
  const bool is_hex = entry.starts_with("0x") || entry.starts_with("0X");
  const bool is_octal = !is_hex && entry.size() > 1 && entry.starts_with('0');
  const auto number = number_in<std::size_t>(std::string_view(entry).substr(is_hex ? 2 : 0), is_hex     ? 16
                                                                                             : is_octal ? 8
                                                                                                        : 10);
  if (!number || *number >= static_cast<std::size_t>(gpus.count)) return {};
  return number;
}

// What ROCm's runtime leaves of them: the list ends at the first entry that is no GPU, or that is there twice.
GpuInventory left_by_rocr(const GpuInventory& gpus, const std::optional<std::string>& list) {
  if (!list) return gpus;
  GpuInventory left;
  std::set<std::size_t> seen;
  for (const std::string& part : split(*list, ',')) {
    const auto index = index_of(gpus, std::string(trim(part)));
    if (!index || !seen.insert(*index).second) break;
    ++left.count;
    left.uuids.push_back(gpus.uuids.at(*index));
  }
  return left;
}

// The tiles of a discrete card: xe shows each as a directory, and with i915 each has a graphics engine (gt) of its own.
int tiles_of(const fs::path& device) {
  std::size_t count = numbered(device, "tile").size();
  for (const std::string& card : numbered(device / "drm", "card")) {
    count = std::max(count, numbered(device / "drm" / card / "gt", "gt").size());
  }
  return std::max(static_cast<int>(count), 1);
}

}  // namespace

GpuInventory find_amd_gpus(const std::string& root) {
  GpuInventory out;
  if (!may_open(fs::path(root) / "dev/kfd")) return out;
  const fs::path nodes = fs::path(root) / "sys/class/kfd/kfd/topology/nodes";
  std::vector<unsigned> numbers;
  for (const std::string& name : numbered(nodes, "")) numbers.push_back(*number_in<unsigned>(name));
  std::ranges::sort(numbers);
  for (const unsigned number : numbers) {
    const fs::path node = nodes / format("{}", number);
    // 0 is a processor. A container may not read that of a GPU that is not its own.
    const std::string gpu_id = word_in(node / "gpu_id");
    if (gpu_id.empty() || gpu_id == "0") continue;
    const fs::path properties = node / "properties";
    if (!may_open(fs::path(root) / format("dev/dri/renderD{}", property_in(properties, "drm_render_minor")))) continue;
    const std::uint64_t id = property_in(properties, "unique_id");
    ++out.count;
    out.uuids.push_back(id == 0 ? "GPU-XX" : format("GPU-{:016x}", id));
    out.addresses.push_back(address_in(properties));
  }
  return out;
}

bool is_in_amd_processor(const std::string& address, const std::string& root) {
  const fs::path bus = fs::path(root) / "sys/bus/pci/devices";
  if (!word_in(bus / address / "class").starts_with("0x03")) return false;
  const std::string device = address.substr(0, address.find('.') + 1);
  return std::ranges::any_of(sorted_entries(bus), [&](const fs::path& each) {
    return each.filename().string().starts_with(device) && word_in(each / "vendor") == "0x1022";
  });
}

int visible_amd_gpus(const GpuInventory& gpus, const std::optional<std::string>& rocr_visible_devices,
                     const std::optional<std::string>& hip_visible_devices,
                     const std::optional<std::string>& cuda_visible_devices) {
  return visible_gpus(left_by_rocr(gpus, rocr_visible_devices),
                      hip_visible_devices ? hip_visible_devices : cuda_visible_devices);
}

IntelGpus find_intel_gpus(const std::optional<std::string>& hierarchy, const std::string& root) {
  IntelGpus out;
  for (const fs::path& device : sorted_entries(fs::path(root) / "sys/bus/pci/devices")) {
    if (word_in(device / "vendor") != "0x8086" || !word_in(device / "class").starts_with("0x03")) continue;
    std::error_code error;
    const fs::path driver = fs::read_symlink(device / "driver", error).filename();
    if (driver != "i915" && driver != "xe") continue;
    const std::vector<std::string> files = numbered(device / "drm", "renderD");
    if (std::ranges::none_of(files,
                             [&](const std::string& name) { return may_open(fs::path(root) / "dev/dri" / name); }))
      continue;
    // The GPU of an Intel processor is always there, and its virtual functions behind it.
    if (device.filename().string().starts_with("0000:00:02.")) {
      ++out.integrated;
    } else {
      out.discrete += hierarchy == "COMPOSITE" ? 1 : tiles_of(device);
    }
  }
  return out;
}

IntelGpus visible_intel_gpus(const IntelGpus& gpus, const std::optional<std::string>& affinity_mask) {
  if (!affinity_mask || affinity_mask->empty()) return gpus;
  std::set<int> visible;
  for (const std::string& part : split(*affinity_mask, ',')) {
    const std::string_view entry = trim(part);
    if (const auto number = number_in<int>(entry.substr(0, entry.find('.')))) visible.insert(*number);
  }
  IntelGpus out;
  for (const int number : visible) {
    if (number < 0) continue;
    out.discrete += number < gpus.discrete;
    out.integrated += number >= gpus.discrete && number < gpus.discrete + gpus.integrated;
  }
  return out;
}

bool has_ascend(const std::string& root) { return !numbered(fs::path(root) / "dev", "davinci").empty(); }

}  // namespace elastic::process
