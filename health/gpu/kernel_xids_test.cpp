#include "health/gpu/kernel_xids.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "src/base/fake_root_test_support.h"

using namespace elastic::health;

namespace {

struct KernelLog : elastic::testing::FakeRoot {
  void log(const std::string& text) const { file("dev/kmsg", text); }
};

}  // namespace

TEST_CASE("Xids of the kernel log are read in two parts: from before the job began, and since then") {
  const KernelLog root;
  const std::string old = "NVRM: Xid (PCI:0000:3b:00): 63, x";
  const std::string recent = "NVRM: Xid (PCI:0000:3b:00): 79, y";
  root.log(
      "3,1,99,-;" + old + "\n6,2,100,-;usb 1-1: new device\n3,3,100,-;" + recent +
      "\n3,4,101,-;Out of memory: Killed process 7 (x)\n12,5,102,-;NVRM: Xid (PCI:0000:3b:00): 48, of a process\n");
  KernelXids xids(root.path, 100);
  const XidLog found = xids.read_new();
  CHECK(found.earlier == old + "\n");
  CHECK(found.recent == recent + "\n");
  CHECK(xids.read_new().recent.empty());
  std::ofstream(root.path / "dev/kmsg", std::ios::app) << "3,6,103,-;" << old << "\n";
  CHECK(xids.read_new().recent == old + "\n");
}

TEST_CASE("of a kernel log that cannot be read there are no Xids, and of one that is full of them the newest stay") {
  const KernelLog root;
  CHECK(KernelXids(root.path, 0).read_new().recent.empty());
  std::string many;
  for (int i = 0; i < 15'000; ++i) {
    many += "3,1,5,-;NVRM: Xid (PCI:0000:3b:00): 79, " + std::string(90, 'x') + std::to_string(i) + "\n";
  }
  root.log(many);
  const XidLog found = KernelXids(root.path, 5).read_new();
  CHECK(found.earlier.empty());
  CHECK(found.recent.size() <= 1024 * 1024);
  CHECK(found.recent.ends_with("x14999\n"));
}
