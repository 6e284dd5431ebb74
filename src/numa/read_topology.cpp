#include "src/numa/read_topology.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "src/base/text.h"
#include "src/numa/number_list.h"

namespace elastic::numa {
namespace {

namespace fs = std::filesystem;

// The first line of a small file; nothing where it cannot be read.
std::optional<std::string> line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || (!std::getline(file, line) && !file.eof())) return {};
  return line;
}

std::optional<int> number_of(const fs::path& path) {
  const auto line = line_of(path);
  const auto number = line ? parse_int(*line) : std::nullopt;
  if (!number || *number < -1 || *number > INT32_MAX) return {};
  return static_cast<int>(*number);
}

std::optional<std::vector<int>> list_of(const fs::path& path) {
  const auto line = line_of(path);
  return line ? parse_number_list(*line) : std::nullopt;
}

// "node3" with the prefix "node": 3.
std::optional<int> number_after(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return {};
  const auto list = parse_number_list(name.substr(prefix.size()));
  return list && list->size() == 1 ? std::optional(list->front()) : std::nullopt;
}

class Reader {
 public:
  Reader(const std::string& root, Topology& into) : system_(fs::path(root) / "sys/devices/system"), into_(into) {}

  void read_nodes() {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(system_ / "node", error)) {
      const auto node = number_after("node", entry.path().filename().string());
      if (!node) continue;
      if (auto cpus = list_of(entry.path() / "cpulist")) into_.nodes.emplace(*node, std::move(*cpus));
    }
    if (into_.nodes.empty()) into_.nodes.emplace(0, into_.allowed);
  }

  void read_sockets() {
    for (const auto& [node, cpus] : into_.nodes) {
      const std::vector<int> usable = intersection(cpus, into_.allowed);
      if (usable.empty()) continue;
      const auto socket = number_of(place_of(usable.front()) / "topology/physical_package_id");
      if (socket) into_.socket_of.emplace(usable.front(), *socket);
    }
  }

  // Of CPUs that share something only the first is asked: each says the same.
  template <class Siblings>
  void read_groups(std::map<int, int>& groups, const Siblings& siblings_of) {
    for (const int cpu : into_.allowed) {
      if (groups.contains(cpu)) continue;
      const auto siblings = siblings_of(cpu);
      if (!siblings || siblings->empty()) continue;
      groups.emplace(cpu, siblings->front());
      for (const int other : intersection(*siblings, into_.allowed)) groups.emplace(other, siblings->front());
    }
  }

  void read_cores() {
    read_groups(into_.core_of, [this](int cpu) { return list_of(place_of(cpu) / "topology/thread_siblings_list"); });
  }

  void read_caches() {
    read_groups(into_.cache_of, [this](int cpu) { return sharers_of_highest_cache(cpu); });
  }

 private:
  fs::path place_of(int cpu) const { return system_ / "cpu" / format("cpu{}", cpu); }

  // Caches for instructions only do not count.
  std::optional<std::vector<int>> sharers_of_highest_cache(int cpu) const {
    std::error_code error;
    std::optional<std::pair<int, fs::path>> highest;
    for (const auto& entry : fs::directory_iterator(place_of(cpu) / "cache", error)) {
      if (!number_after("index", entry.path().filename().string())) continue;
      const auto type = line_of(entry.path() / "type");
      if (!type || (trim(*type) != "Unified" && trim(*type) != "Data")) continue;
      const auto level = number_of(entry.path() / "level");
      if (level && (!highest || *level > highest->first)) highest.emplace(*level, entry.path());
    }
    return highest ? list_of(highest->second / "shared_cpu_list") : std::nullopt;
  }

  fs::path system_;
  Topology& into_;
};

}  // namespace

Topology read_topology(const std::string& root, Mode mode, std::vector<int> allowed, std::vector<Gpu> gpus) {
  Topology found{.allowed = std::move(allowed), .gpus = std::move(gpus)};
  Reader reader(root, found);
  reader.read_nodes();
  if (mode == Mode::kSocket) reader.read_sockets();
  if (mode == Mode::kExclusive) reader.read_cores();
  if (mode == Mode::kCoreComplex) reader.read_caches();
  for (Gpu& gpu : found.gpus) {
    if (gpu.address.empty()) continue;
    gpu.node = number_of(fs::path(root) / "sys/bus/pci/devices" / gpu.address / "numa_node");
    if (!gpu.node) gpu.why_unknown = "numa_node of the GPU cannot be read in /sys/bus/pci/devices";
  }
  return found;
}

}  // namespace elastic::numa
