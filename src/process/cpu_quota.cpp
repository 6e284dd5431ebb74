#include "src/process/cpu_quota.h"

#include <algorithm>
#include <fstream>

#include "src/base/text.h"
#include "src/process/cgroup_place.h"

namespace elastic::process {
namespace {

// The words of a small file, which are numbers or "max"; "-1" and "max" are no limit.
std::optional<std::int64_t> next_count(std::ifstream& file) {
  std::string word;
  file >> word;
  const auto number = parse_int(word);
  return number && *number > 0 ? number : std::nullopt;
}

class Least {
 public:
  void take(std::optional<std::int64_t> quota_us, std::optional<std::int64_t> period_us) {
    if (!quota_us || !period_us) return;
    const double cpus = static_cast<double>(*quota_us) / static_cast<double>(*period_us);
    cpus_ = std::min(cpus, cpus_.value_or(cpus));
  }
  std::optional<double> cpus() const { return cpus_; }

 private:
  std::optional<double> cpus_;
};

}  // namespace

std::optional<double> cpu_quota(const std::string& root) {
  Least least;
  for (const std::string& level : own_cgroup_levels({}, root)) {
    std::ifstream allowed(level + "/cpu.max");  // "150000 100000", "max 100000"
    const auto quota_us = next_count(allowed);
    least.take(quota_us, next_count(allowed));
  }
  for (const std::string& level : own_cgroup_levels("cpu", root)) {
    std::ifstream quota(level + "/cpu.cfs_quota_us");
    std::ifstream period(level + "/cpu.cfs_period_us");
    least.take(next_count(quota), next_count(period));
  }
  return least.cpus();
}

}  // namespace elastic::process
