#include "cli/host_view.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "src/base/check.h"
#include "src/base/text.h"
#include "src/process/devices.h"

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

int ThisHost::usable_cpus() const { return process::usable_cpus(); }

int ThisHost::visible_gpus(const std::optional<std::string>& cuda_visible_devices) const {
  return process::visible_gpus(process::find_gpus(), cuda_visible_devices);
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
