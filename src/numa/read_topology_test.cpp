#include "src/numa/read_topology.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "src/base/fake_root_test_support.h"
#include "src/base/text.h"

using namespace elastic::numa;

namespace {

struct SysfsRoot : elastic::testing::FakeRoot {
  void file(const std::string& name, const std::string& text) const { FakeRoot::file(name, text + "\n"); }
  void cpu(int number, const std::string& name, const std::string& text) const {
    file(elastic::format("sys/devices/system/cpu/cpu{}/{}", number, name), text);
  }
  void cache(int number, int index, const std::string& type, const std::string& level, const std::string& cpus) const {
    const std::string place = elastic::format("cache/index{}/", index);
    cpu(number, place + "type", type);
    cpu(number, place + "level", level);
    cpu(number, place + "shared_cpu_list", cpus);
  }
  Topology read(Mode mode, std::vector<int> allowed, std::vector<Gpu> gpus = {}) const {
    return read_topology(path.string(), mode, std::move(allowed), std::move(gpus));
  }
};

using Groups = std::map<int, int>;

}  // namespace

TEST_CASE("NUMA nodes are read with their CPUs, also those that have none") {
  const SysfsRoot root;
  root.file("sys/devices/system/node/node0/cpulist", "0-1,4-5");
  root.file("sys/devices/system/node/node10/cpulist", "2-3");
  root.file("sys/devices/system/node/node2/cpulist", "");
  root.file("sys/devices/system/node/nodes/cpulist", "9");
  root.file("sys/devices/system/node/has_cpu", "0,10");
  const Topology found = root.read(Mode::kNode, {0, 1, 2});
  CHECK(found.nodes == std::map<int, std::vector<int>>{{0, {0, 1, 4, 5}}, {2, {}}, {10, {2, 3}}});
  CHECK(found.allowed == std::vector<int>{0, 1, 2});
}

TEST_CASE("a kernel that knows no NUMA nodes has one with all CPUs") {
  const SysfsRoot root;
  CHECK(root.read(Mode::kSocket, {3, 5}).nodes == std::map<int, std::vector<int>>{{0, {3, 5}}});
}

TEST_CASE("the socket of a node is that of its lowest allowed CPU") {
  const SysfsRoot root;
  root.file("sys/devices/system/node/node0/cpulist", "0-1");
  root.file("sys/devices/system/node/node1/cpulist", "2-3");
  root.file("sys/devices/system/node/node2/cpulist", "");
  for (int cpu = 0; cpu < 4; ++cpu) root.cpu(cpu, "topology/physical_package_id", elastic::format("{}", cpu * 10));
  CHECK(root.read(Mode::kSocket, {1, 2, 3}).socket_of == Groups{{1, 10}, {2, 20}});
}

TEST_CASE("a physical core has the number of its lowest CPU, also where that is not allowed") {
  const SysfsRoot root;
  for (const int cpu : {1, 5}) root.cpu(cpu, "topology/thread_siblings_list", "1,5");
  for (const int cpu : {2, 6}) root.cpu(cpu, "topology/thread_siblings_list", "2,6");
  CHECK(root.read(Mode::kExclusive, {2, 5, 6, 7}).core_of == Groups{{2, 2}, {5, 1}, {6, 2}});
}

TEST_CASE("a core complex is what shares the highest cache that has data") {
  const SysfsRoot root;
  for (const int cpu : {0, 1}) {
    root.cache(cpu, 0, "Data", "1", elastic::format("{}", cpu));
    root.cache(cpu, 1, "Unified", "3", "0-1,8");
    root.cache(cpu, 2, "Instruction", "4", "0-99");
    root.cache(cpu, 3, "Unified", "2", elastic::format("{}", cpu));
  }
  root.cpu(4, "cache/uevent", "");
  CHECK(root.read(Mode::kCoreComplex, {0, 1, 4}).cache_of == Groups{{0, 0}, {1, 0}});
}

TEST_CASE("the NUMA node of each GPU is read, or why it is not known") {
  const SysfsRoot root;
  root.file("sys/bus/pci/devices/0000:1a:00.0/numa_node", "1");
  root.file("sys/bus/pci/devices/0000:1b:00.0/numa_node", "-1");
  const Topology found = root.read(Mode::kNode, {0},
                                   {{.address = "0000:1a:00.0"},
                                    {.address = "0000:1b:00.0"},
                                    {.address = "0000:1c:00.0"},
                                    {.why_unknown = "an instance"}});
  CHECK(found.gpus.at(0).node == 1);
  CHECK(found.gpus.at(1).node == -1);
  CHECK(!found.gpus.at(2).node);
  CHECK(found.gpus.at(2).why_unknown == "numa_node of the GPU cannot be read in /sys/bus/pci/devices");
  CHECK(found.gpus.at(3).why_unknown == "an instance");
}
