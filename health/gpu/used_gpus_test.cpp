#include "health/gpu/used_gpus.h"

#include <doctest/doctest.h>

using namespace elastic::health;

namespace {

using Opened = std::vector<std::optional<GpuIdentity>>;

const GpuIdentity kFirst{"GPU-00", "0000:1a:00.0"};
const GpuIdentity kThird{"GPU-02", "0000:1c:00.0"};

// Four GPUs as NVML shows them.
std::vector<GpuFacts> four() {
  std::vector<GpuFacts> shown;
  for (int i = 0; i < 4; ++i) {
    shown.push_back({.index = i,
                     .uuid = "GPU-0" + std::to_string(i),
                     .bus_id = "0000:1" + std::string(1, static_cast<char>('a' + i)) + ":00.0",
                     .name = "NVIDIA H100"});
  }
  return shown;
}

// The UUIDs of these GPUs.
std::vector<std::string> used(const Opened& opened, const std::vector<GpuFacts>& shown,
                              const std::optional<std::string>& visible) {
  const auto found = used_gpus(opened, shown, visible);
  if (!found) return {"not known"};
  std::vector<std::string> uuids;
  for (const GpuIdentity& one : *found) uuids.push_back(one.uuid);
  return uuids;
}

using Uuids = std::vector<std::string>;

}  // namespace

TEST_CASE("the GPU that a program sees under a number follows from CUDA_VISIBLE_DEVICES") {
  const std::vector<GpuFacts> shown = four();
  const auto seen = [&](std::size_t index, const std::optional<std::string>& visible) {
    const GpuFacts* gpu = visible_gpu(index, shown, visible);
    return gpu == nullptr ? -1 : gpu->index;
  };
  CHECK(seen(2, {}) == 2);
  CHECK(seen(4, {}) == -1);
  CHECK(seen(1, "3, 2") == 2);
  CHECK(seen(2, "3,2") == -1);
  CHECK(seen(0, "GPU-01") == 1);
  CHECK(seen(0, "MIG-1") == -1);
}

TEST_CASE("the GPUs that workers use are those that were opened") {
  CHECK(used({kThird, kFirst}, four(), "2,0") == Uuids{"GPU-02", "GPU-00"});
  CHECK(used({kFirst}, {}, {}) == Uuids{"GPU-00"});
}

TEST_CASE("where all GPUs of the host are the workers', one that cannot be opened is judged, too") {
  CHECK(used({kFirst, {}, kThird, {}}, four(), {}) == Uuids{});
  CHECK(used({{}}, {four()[0]}, "0") == Uuids{});
  CHECK(used({{}}, {}, {}) == Uuids{});
}

TEST_CASE("a GPU that cannot be opened is found by its place in CUDA_VISIBLE_DEVICES") {
  CHECK(used({{}, {}}, four(), {}) == Uuids{"GPU-00", "GPU-01"});
  CHECK(used({kThird, {}}, four(), "2, 3") == Uuids{"GPU-02", "GPU-03"});
  CHECK(used({{}, kThird}, four(), "GPU-03,GPU-02") == Uuids{"GPU-02", "GPU-03"});
  CHECK(used({{}, {}}, four(), "MIG-1,7") == Uuids{"not known"});
  CHECK(used({{}, {}}, four(), "") == Uuids{"not known"});
  std::vector<GpuFacts> mixed = four();
  mixed[1].name = "";
  CHECK(used({{}}, mixed, "1") == Uuids{"GPU-01"});
  mixed[1].name = "NVIDIA A100";
  CHECK(used({{}}, mixed, "1") == Uuids{"not known"});
  CHECK(used({{}}, mixed, "GPU-01") == Uuids{"GPU-01"});
}
