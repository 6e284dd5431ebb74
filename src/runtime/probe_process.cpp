#include "src/runtime/probe_process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "health/host/judge_host.h"
#include "health/host/read_facts.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::runtime {
namespace {

std::optional<std::int64_t> number_in(const agent::Environment& environment, const char* name) {
  const auto text = agent::lookup(environment, name);
  return text ? parse_int(*text) : std::nullopt;
}

// The limit that workers will have, too: a probe is started as they are.
std::optional<std::uint64_t> soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return {};
  return limit.rlim_cur == RLIM_INFINITY ? health::kUnlimited : std::uint64_t{limit.rlim_cur};
}

std::vector<health::Finding> look_at_host(int nproc, const std::string& log_directory) {
  const health::WorkerLimits limits{.locked_bytes = soft_limit(RLIMIT_MEMLOCK), .open_files = soft_limit(RLIMIT_NOFILE)};
  const health::HostFacts facts = health::read_facts("", limits, log_directory);
  return health::judge_host(facts, facts, {.nproc = nproc, .interfaces = {}, .log_directory = log_directory});
}

}  // namespace

health::ProbeSettings probe_settings(const agent::Environment& environment, int local_world_size) {
  health::ProbeSettings settings;
  if (const auto seconds = number_in(environment, kProbeVariables[0]); seconds && *seconds > 0) {
    settings.test_ms = std::min(*seconds, limits::kMaxTimeoutSeconds) * 1000;
  }
  const auto rank = number_in(environment, kProbeVariables[1]);
  settings.mock_error = rank && *rank >= 0 && *rank < local_world_size;
  return settings;
}

int run_probe_process(const std::vector<std::string>& arguments, const agent::Environment& environment) {
  constexpr int kBadUse = 2;
  if (arguments.size() != 3) return kBadUse;
  const int nproc = static_cast<int>(std::clamp<std::int64_t>(parse_int(arguments[1]).value_or(1), 1, INT32_MAX));
  health::ProbeSettings settings = probe_settings(environment, nproc);
  settings.look_at_host = [&] { return look_at_host(nproc, arguments[2]); };
  return health::run_probe(STDOUT_FILENO, settings);
}

}  // namespace elastic::runtime
