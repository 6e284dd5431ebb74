#include "cli/host_view.h"

#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "src/base/check.h"
#include "src/base/read_file.h"
#include "src/base/text.h"
#include "src/numa/read_topology.h"
#include "src/process/devices.h"
#include "src/process/other_devices.h"

namespace elastic::cli {

HostView::PathFacts ThisHost::look_at(const std::string& path) const {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  return {.exists = true,
          .directory = S_ISDIR(status.st_mode),
          .readable = access(path.c_str(), R_OK) == 0,
          .executable = access(path.c_str(), X_OK) == 0,
          .writable = access(path.c_str(), W_OK) == 0};
}

std::string ThisHost::resolved(const std::string& path) const {
  std::error_code failed;
  const std::filesystem::path found = std::filesystem::canonical(path, failed);
  return failed ? std::string() : found.string();
}

std::vector<std::string> ThisHost::own_paths() const {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;  // as many as the kernel follows
  // The path that execve() was called with; if the kernel does not tell it, the link in /proc will do.
  const auto* started_as = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  std::error_code failed;
  fs::path path = fs::absolute(started_as != nullptr ? started_as : "/proc/self/exe", failed).lexically_normal();
  std::vector<std::string> paths;
  for (int links = 0; !failed && links < kMostLinks; ++links) {
    paths.push_back(path.string());
    const fs::path target = fs::read_symlink(path, failed);
    if (!failed) path = (path.parent_path() / target).lexically_normal();
  }
  if (paths.empty()) return paths;
  if (std::string real = resolved(paths.front()); !real.empty() && real != paths.back())
    paths.push_back(std::move(real));
  return paths;
}

int ThisHost::usable_cpus() const { return process::usable_cpus(); }

int ThisHost::visible_gpus(const std::optional<std::string>& cuda_visible_devices) const {
  return process::visible_gpus(process::find_gpus(), cuda_visible_devices);
}

HostView::OtherDevices ThisHost::other_devices(const Environment& environment) const {
  const auto variable = [&](std::string_view name) { return elastic::lookup(environment, name); };
  const process::GpuInventory amd = process::find_amd_gpus();
  const process::IntelGpus intel = process::find_intel_gpus(variable("ZE_FLAT_DEVICE_HIERARCHY"));
  const process::IntelGpus visible = process::visible_intel_gpus(intel, variable("ZE_AFFINITY_MASK"));
  return {.has_amd = amd.count > 0,
          .amd = process::visible_amd_gpus(amd, variable("ROCR_VISIBLE_DEVICES"), variable("HIP_VISIBLE_DEVICES"),
                                           variable("CUDA_VISIBLE_DEVICES")),
          .is_amd_integrated = std::ranges::all_of(
              amd.addresses, [](const std::string& address) { return process::is_in_amd_processor(address); }),
          .has_intel = intel.discrete + intel.integrated > 0,
          .intel = visible.discrete,
          .intel_integrated = visible.integrated,
          .has_ascend = process::has_ascend()};
}

numa::Topology ThisHost::numa_topology(numa::Mode mode, const std::optional<std::string>& cuda_visible_devices,
                                       const std::optional<std::string>& cuda_device_order) const {
  std::vector<numa::Gpu> gpus;
  for (auto& gpu : process::find_visible_gpus(process::find_gpus(), cuda_visible_devices, cuda_device_order)) {
    gpus.push_back({.address = std::move(gpu.address), .why_unknown = std::move(gpu.why)});
  }
  return numa::read_topology("/", mode, process::allowed_cpus(), std::move(gpus));
}

Result<std::string> ThisHost::read_file(const std::string& path, std::size_t most) const {
  auto text = elastic::read_file(path, most + 1);
  if (!text) return fail_errno(printable(path), text.error(), "");
  if (text->size() > most) return fail(printable(path), format("it is longer than {} bytes", most));
  return *std::move(text);
}

std::string ThisHost::random_uuid() const {
  std::array<unsigned char, 16> bytes{};
  ELASTIC_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0F) | 0x40);  // version 4
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3F) | 0x80);  // the variant of RFC 4122
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += format("{:02x}", bytes[i]);
  }
  return out;
}

}  // namespace elastic::cli
