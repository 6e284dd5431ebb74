#include "health/host/read_infiniband.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "health/host/system_files.h"
#include "src/base/text.h"
#include "src/process/cgroup.h"

namespace elastic::health {
namespace {

namespace fs = std::filesystem;
using process::path_in;

// | bridges above a PCI device of sysfs | {kMostLevels} levels | its place is not known |
constexpr std::size_t kMostLevels = 32;  // of a PCI path

// "ACTIVE" where the file has "4: ACTIVE"; empty if it has another form.
std::string state_in(const std::string& path) {
  const std::string text = read_word(path);
  const std::size_t colon = text.find(": ");
  return colon == std::string::npos ? "" : text.substr(colon + 2);
}

// Resolves a link to a device in sysfs, ".../devices/pci0000:17/0000:17:01.0/0000:18:00.0", and keeps the part from the
// host bridge on.
PciPath pci_path_behind(const std::string& link) {
  std::error_code error;
  const fs::path device = fs::canonical(link, error);
  if (error) return {};
  PciPath found;
  for (const fs::path& part : device) {
    const std::string name = part;
    if (found.nodes.empty() && !(name.starts_with("pci") && name.contains(':'))) continue;
    if (found.nodes.size() >= kMostLevels) return {};
    found.nodes.push_back(printable(name));
  }
  if (found.nodes.empty()) return {};
  const Count node = count_in(device.string() + "/numa_node");  // -1: not known
  if (node && *node < kSystemEntries) found.numa_node = static_cast<int>(*node);
  return found;
}

}  // namespace

std::vector<InfinibandPort> read_infiniband(const std::string& root) {
  std::vector<InfinibandPort> found;
  const std::string all = path_in(root, "/sys/class/infiniband");
  for (const std::string& device : names_in(all)) {
    const std::string ports = format("{}/{}/ports", all, device);
    const std::string behind = format("{}/{}/device", all, device);  // missing for a device that is made by software
    const std::string vendor = read_word(behind + "/vendor");
    const std::string model = read_word(behind + "/device");
    const std::string kind = vendor.empty() || model.empty() ? "" : vendor + ":" + model;
    const PciPath pci = pci_path_behind(behind);
    for (const std::string& name : names_in(ports)) {
      const Count port = to_count(name);
      if (!port || *port > 255) continue;
      const std::string folder = ports + "/" + name;
      found.push_back({.device = device,
                       .port = static_cast<int>(*port),
                       .state = state_in(folder + "/state"),
                       .phys_state = state_in(folder + "/phys_state"),
                       .rate = read_word(folder + "/rate"),
                       .link_layer = read_word(folder + "/link_layer"),
                       .kind = kind,
                       .pci = pci});
    }
  }
  return found;
}

PciPath read_pci_path(const std::string& root, const std::string& bus_id) {
  constexpr std::size_t kDomainDigits = 4;
  std::string name = lower(bus_id);
  const std::size_t domain = name.find(':');
  if (domain == std::string::npos || name.contains('/')) return {};
  const std::size_t digits = std::min(name.find_first_not_of('0'), domain);
  name.erase(0, std::min(digits, domain - std::min(domain, kDomainDigits)));
  return pci_path_behind(path_in(root, "/sys/bus/pci/devices/" + name));
}

}  // namespace elastic::health
