#include "src/numa/binding.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"
#include "src/numa/number_list.h"

namespace elastic::numa {
namespace {

constexpr int kNoGroup = -1;

// What a worker goes by: a GPU, or a GPU that there might be.
struct Device {
  std::optional<int> node = {};
  std::string why = {};  // the node is not known, or only assumed
};

class Placer {
 public:
  Placer(const Topology& topology, const Request& request, int workers) : topology_(topology), request_(request) {
    for (const auto& [node, cpus] : topology.nodes) {
      std::vector<int> both = intersection(cpus, topology.allowed);
      if (!both.empty()) cpus_of_.emplace(node, std::move(both));
    }
    for (const Gpu& gpu : topology.gpus) devices_.push_back(device_of(gpu));
    if (devices_.empty()) spread(static_cast<std::size_t>(workers));
  }

  Placement place(int local_rank) const {
    const std::size_t index = static_cast<std::size_t>(local_rank) % devices_.size();
    const Device& device = devices_[index];
    Placement placement{.why_other = device.why};
    if (!device.node) return placement;
    const auto found = cpus_of_.find(*device.node);
    if (found == cpus_of_.end()) {
      is_other(placement, why_none(*device.node));
      return placement;
    }
    switch (request_.mode) {
      case Mode::kNode: placement.cpus = found->second; break;
      case Mode::kSocket: take_socket(found->second, placement); break;
      case Mode::kExclusive: take_share(index, found->second, placement); break;
      case Mode::kCoreComplex: take_complex(index, found->second, placement); break;
    }
    ELASTIC_CHECK(!placement.cpus.empty());
    take_memory(*device.node, placement);
    return placement;
  }

 private:
  static void is_other(Placement& placement, const std::string& why) {
    placement.why_other += placement.why_other.empty() ? why : format(", and {}", why);
  }

  // Where only one node has CPUs to use, it is that. Else torch's rule for a GPU whose firmware names no node: node 0.
  Device device_of(const Gpu& gpu) const {
    if (gpu.node && *gpu.node >= 0) return {.node = gpu.node};
    const bool is_only_one = cpus_of_.size() == 1;
    if (!gpu.node && !is_only_one) return {.why = gpu.why_unknown};
    const int node = is_only_one ? cpus_of_.begin()->first : 0;
    const auto has_cpus = [](const auto& entry) { return !entry.second.empty(); };
    if (std::ranges::count_if(topology_.nodes, has_cpus) < 2) return {.node = node};
    const std::string why = gpu.node ? "sysfs names no NUMA node of the GPU" : gpu.why_unknown;
    return {.node = node, .why = format("{} (node {} is assumed)", why, node)};
  }

  // Neighbours stay together, as GPUs usually lie.
  void spread(std::size_t workers) {
    std::vector<int> nodes;
    for (const auto& [node, cpus] : cpus_of_) nodes.push_back(node);
    for (std::size_t worker = 0; worker < workers; ++worker) {
      Device device{.why = "none of the CPUs that elastic-run may use is in a NUMA node"};
      if (!nodes.empty()) device = {.node = nodes[worker * nodes.size() / workers]};
      devices_.push_back(std::move(device));
    }
  }

  std::string why_none(int node) const {
    if (topology_.allowed.empty()) return "the CPUs that elastic-run may use are not known";
    const auto known = topology_.nodes.find(node);
    if (known == topology_.nodes.end()) return format("sysfs has no NUMA node {}", node);
    if (known->second.empty()) return format("NUMA node {} has no CPUs", node);
    return format("elastic-run may use {} {} only, and NUMA node {} has {}", plural("CPU", topology_.allowed.size()),
                  rank_ranges(topology_.allowed), node, rank_ranges(known->second));
  }

  // Which of the node's devices it is, and how many these are.
  std::pair<std::size_t, std::size_t> place_among_neighbours(std::size_t index) const {
    const auto is_neighbour = [node = devices_[index].node](const Device& device) { return device.node == node; };
    const auto here = devices_.begin() + static_cast<std::ptrdiff_t>(index);
    return {static_cast<std::size_t>(std::count_if(devices_.begin(), here, is_neighbour)),
            static_cast<std::size_t>(std::count_if(devices_.begin(), devices_.end(), is_neighbour))};
  }

  std::optional<int> socket_of(const std::vector<int>& cpus) const {
    const auto found = topology_.socket_of.find(cpus.front());
    return found == topology_.socket_of.end() ? std::nullopt : std::optional(found->second);
  }

  void take_socket(const std::vector<int>& of_node, Placement& placement) const {
    placement.cpus = of_node;
    const auto socket = socket_of(of_node);
    if (!socket) {
      is_other(placement, format("sysfs does not tell the socket of CPU {}", of_node.front()));
      return;
    }
    for (const auto& [node, cpus] : cpus_of_) {
      if (socket_of(cpus) == socket) placement.cpus.insert(placement.cpus.end(), cpus.begin(), cpus.end());
    }
    std::ranges::sort(placement.cpus);
    const auto repeated = std::ranges::unique(placement.cpus);
    placement.cpus.erase(repeated.begin(), repeated.end());
  }

  // The first `cores % devices` devices get one core more than the others.
  void take_share(std::size_t index, const std::vector<int>& of_node, Placement& placement) const {
    std::map<int, std::vector<int>> by_core;
    std::vector<int> without_core;
    for (const int cpu : of_node) {
      const auto core = topology_.core_of.find(cpu);
      if (core == topology_.core_of.end()) without_core.push_back(cpu);
      by_core[core == topology_.core_of.end() ? cpu : core->second].push_back(cpu);
    }
    if (!without_core.empty()) {
      is_other(placement,
               format("sysfs does not tell the physical {} of {} {}", without_core.size() == 1 ? "core" : "cores",
                      plural("CPU", without_core.size()), rank_ranges(without_core)));
    }
    const auto [place, count] = place_among_neighbours(index);
    const std::size_t each = by_core.size() / count;
    const std::size_t left = by_core.size() % count;
    if (each == 0) {
      placement.cpus = of_node;
      is_other(placement, format("NUMA node {} has {} to use, too few for {} exclusive parts",
                                 devices_[index].node.value_or(0), counted(by_core.size(), "physical core"), count));
      return;
    }
    auto core = std::next(by_core.begin(), static_cast<std::ptrdiff_t>(place * each + std::min(place, left)));
    for (std::size_t taken = 0; taken < each + (place < left ? 1 : 0); ++taken, ++core) {
      placement.cpus.insert(placement.cpus.end(), core->second.begin(), core->second.end());
    }
    std::ranges::sort(placement.cpus);
  }

  // Groups with more allowed CPUs come first.
  void take_complex(std::size_t index, const std::vector<int>& of_node, Placement& placement) const {
    std::map<int, std::vector<int>> by_cache;
    for (const int cpu : of_node) {
      const auto cache = topology_.cache_of.find(cpu);
      by_cache[cache == topology_.cache_of.end() ? kNoGroup : cache->second].push_back(cpu);
    }
    std::vector<std::pair<int, std::vector<int>>> groups(by_cache.begin(), by_cache.end());
    std::ranges::stable_sort(
        groups, [](const auto& one, const auto& other) { return one.second.size() > other.second.size(); });
    auto& [cache, cpus] = groups[place_among_neighbours(index).first % groups.size()];
    placement.cpus = std::move(cpus);
    if (cache == kNoGroup) {
      is_other(placement, format("sysfs tells no caches of CPUs {}", rank_ranges(placement.cpus)));
    }
  }

  void take_memory(int node, Placement& placement) const {
    placement.memory = request_.memory;
    if (request_.memory == Memory::kPreferred) placement.nodes = {node};
    if (request_.memory != Memory::kBound) return;
    for (const auto& [number, cpus] : cpus_of_) {
      if (!intersection(cpus, placement.cpus).empty()) placement.nodes.push_back(number);
    }
  }

  const Topology& topology_;
  const Request& request_;
  std::map<int, std::vector<int>> cpus_of_;  // allowed CPUs, of the nodes that have some
  std::vector<Device> devices_;
};

struct Group {
  Warning first;
  std::vector<int> ranks;
};

std::string text_of_group(const Group& group) {
  const bool is_memory = group.first.kind == Warning::Kind::kMemoryNotBound;
  const bool is_other = group.first.kind == Warning::Kind::kOtherCpus;
  return format("the {} of {} {} {} {}: {}", is_memory ? "memory" : "CPUs", plural("local rank", group.ranks.size()),
                rank_ranges(group.ranks), is_memory ? "is" : "are",
                is_other ? "perhaps not those that were asked for" : "not bound", group.first.reason);
}

}  // namespace

std::vector<Placement> place_workers(const Topology& topology, const Request& request, int workers) {
  ELASTIC_CHECK(workers > 0);
  const Placer placer(topology, request, workers);
  std::vector<Placement> placements;
  for (int local_rank = 0; local_rank < workers; ++local_rank) placements.push_back(placer.place(local_rank));
  return placements;
}

std::string text_of(const std::vector<Warning>& warnings) {
  std::vector<Group> groups;
  for (const Warning& warning : warnings) {
    const auto same = std::ranges::find_if(groups, [&](const Group& group) {
      return group.first.kind == warning.kind && group.first.reason == warning.reason;
    });
    if (same == groups.end()) {
      groups.push_back({warning, {warning.local_rank}});
    } else {
      same->ranks.push_back(warning.local_rank);
    }
  }
  std::vector<std::string> texts;
  for (const Group& group : groups) texts.push_back(text_of_group(group));
  return join(texts, "; ");
}

}  // namespace elastic::numa
