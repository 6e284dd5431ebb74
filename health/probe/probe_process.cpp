#include "health/probe/probe_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "health/gpu/host_library_files.h"
#include "health/gpu/libraries.h"
#include "health/host/hook.h"
#include "health/host/judge_host.h"
#include "health/host/read_facts.h"
#include "health/probe/command.h"
#include "src/base/json.h"
#include "src/base/json_archive.h"
#include "src/base/limits.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace elastic::health {
namespace {

std::optional<std::int64_t> number_in(const Environment& environment, const char* name) {
  const auto text = elastic::lookup(environment, name);
  return text ? parse_int(*text) : std::nullopt;
}

std::string root_of(const Environment& environment) {
  return elastic::lookup(environment, kProbeVariables[4]).value_or("");
}

// Workers will have the same limit, since a probe inherits it as they do.
std::optional<std::uint64_t> soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return {};
  return limit.rlim_cur == RLIM_INFINITY ? kUnlimited : std::uint64_t{limit.rlim_cur};
}

// The findings about the host: all in the first phase, later only new ones.
class HostLook {
 public:
  HostLook(const ProbeTask& task, const Environment& environment)
      : task_(task), environment_(environment), before_(facts()) {}

  std::vector<Finding> look() {
    const HostNeeds needs{
        .nproc = task_.local_world_size, .interfaces = task_.interfaces, .log_directory = task_.log_directory};
    std::vector<Finding> found = told_.new_ones(judge_host(before_, facts(), needs));
    if (!std::exchange(hook_has_run_, true) && !task_.check.hook.empty()) {
      for (Finding& finding : run_hook()) found.push_back(std::move(finding));
    }
    return found;
  }

 private:
  HostFacts facts() const {
    const WorkerLimits limits{.locked_bytes = soft_limit(RLIMIT_MEMLOCK), .open_files = soft_limit(RLIMIT_NOFILE)};
    return read_facts(root_of(environment_), limits, task_.log_directory);
  }

  std::vector<Finding> run_hook() const {
    const std::int64_t limit_ms = hook_limit_ms(environment_, task_);
    const CommandsEnd all =
        run_commands({{.text = task_.check.hook, .variables = {format("LOCAL_WORLD_SIZE={}", task_.local_world_size)}}},
                     {.environment = environment_, .output_bytes = kHookOutputBytes}, Deadline(limit_ms));
    const CommandEnd& end = all.commands.front();
    HookEnd told{.status = end.status};
    if (end.how == CommandEnd::How::kAtDeadline) told.timed_out_after_s = limit_ms / 1000;
    told.why_not_started = end.why_not_started;
    return hook_findings(task_.check.hook, told, all.output);
  }

  const ProbeTask& task_;
  const Environment& environment_;
  const HostFacts before_;
  bool hook_has_run_ = false;
  ToldFindings told_;
};

// A hook must not read what the user types.
void close_input() {
  const UniqueFd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (nothing) dup2(nothing.get(), STDIN_FILENO);
}

// The user base directory, as Python's site.py finds it.
std::string user_base_in(const Environment& environment) {
  if (!elastic::lookup(environment, "PYTHONNOUSERSITE").value_or("").empty()) return "";
  const std::string named(elastic::lookup(environment, "PYTHONUSERBASE").value_or(""));
  if (!named.empty()) return named;
  const std::string home(elastic::lookup(environment, "HOME").value_or(""));
  return home.empty() ? "" : home + "/.local";
}

// Called in the probe's process only, since reading directories may hang.
LibraryCandidates libraries_of(const ProbeTask& task, const Environment& environment) {
  return library_candidates({.nccl_lib = task.check.nccl_lib,
                             .python = task.python,
                             .conda_prefix = elastic::lookup(environment, "CONDA_PREFIX").value_or(""),
                             .python_path = elastic::lookup(environment, "PYTHONPATH").value_or(""),
                             .user_base = user_base_in(environment)},
                            HostLibraryFiles());
}

std::optional<std::int64_t> limit_ms_in(const Environment& environment) {
  const auto seconds = number_in(environment, kProbeVariables[0]);
  if (!seconds || *seconds <= 0) return {};
  return std::min(*seconds, limits::kMaxTimeoutSeconds) * 1000;
}

}  // namespace

std::vector<std::string> probe_arguments(const ProbeTask& task) {
  return {kProbeArgument, write_json(task, JsonForm::kExact).dump()};
}

std::optional<ProbeTask> read_probe_arguments(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2 || arguments[0] != kProbeArgument) return {};
  const auto json = Json::parse(arguments[1], "the task of a probe");
  ProbeTask task;
  if (!json || !read_json(*json, task, JsonForm::kExact).empty()) return {};
  return task;
}

ProbeSettings probe_settings(const Environment& environment, const ProbeTask& task) {
  constexpr std::int64_t kExternalMs = 180'000;  // DLRover's limit
  ProbeSettings settings;
  if (!task.check.external.empty()) {
    settings.external = {.command = task.check.external,
                         .environment = environment,
                         .directory = elastic::lookup(environment, kProbeVariables[2]).value_or(kExternalDirectory),
                         .local_world_size = task.local_world_size};
    settings.test_ms = kExternalMs;
  }
  settings.test_ms = limit_ms_in(environment).value_or(settings.test_ms);
  if (!task.check.external.empty()) settings.busy_ms = settings.test_ms;
  settings.gpu = {.gpus = task.check.gpus,
                  .workers = task.local_world_size,
                  .program = task.check.gpu_program,
                  .libraries = {},
                  .environment = environment,
                  .temporary = task.temporary,
                  .root = root_of(environment),
                  .began_us = task.began_us,
                  .gather_bytes = std::clamp<std::int64_t>(
                      number_in(environment, kProbeVariables[3]).value_or(kGatherBytes), 8, kGatherBytes)};
  if (settings.gpu.gpus > 0) {
    // The user's limit applies to each step. NVML's facts come quickly or never, so their limit is only lowered.
    const auto limit_ms = limit_ms_in(environment);
    for (std::int64_t* step_ms :
         {&settings.gpu.open_ms, &settings.gpu.first_facts_ms, &settings.gpu.compute_ms, &settings.gpu.gather_ms}) {
      *step_ms = limit_ms.value_or(*step_ms);
    }
    settings.gpu.facts_ms = std::min(settings.gpu.facts_ms, limit_ms.value_or(settings.gpu.facts_ms));
    settings.busy_ms += settings.gpu.gather_ms;
    // With NCCL_COMM_ID every communicator of the check would use the same address.
    std::erase_if(settings.gpu.environment,
                  [](const std::string& entry) { return entry.starts_with("NCCL_COMM_ID="); });
  }
  const auto rank = number_in(environment, kProbeVariables[1]);
  settings.mock_error = rank && *rank >= 0 && *rank < task.local_world_size;
  return settings;
}

std::int64_t hook_limit_ms(const Environment& environment, const ProbeTask& task) {
  constexpr std::int64_t kHookMs = 30'000;
  return task.check.hook.empty() ? 0 : limit_ms_in(environment).value_or(kHookMs);
}

namespace {

// Added to the probe's own deadlines.
constexpr std::int64_t kGraceMs = 5'000;

// The time in which one neighbour must be connected.
std::int64_t connect_limit_ms(const ProbeSettings& settings, const PairOrder& order) {
  return settings.connect_ms + order.after * settings.busy_ms;
}

}  // namespace

std::int64_t look_limit_ms(const Environment& environment, const ProbeTask& task) {
  constexpr std::int64_t kHostMs = 30'000;  // to test the host, which does not depend on other nodes
  return kHostMs + hook_limit_ms(environment, task) + longest_look_ms(probe_settings(environment, task).gpu);
}

std::int64_t tests_limit_ms(const Environment& environment, const ProbeTask& task, const CheckOrder& order) {
  const ProbeSettings settings = probe_settings(environment, task);
  if (const auto* ring = std::get_if<RingOrder>(&order)) {
    return kGraceMs + connect_limit_ms(settings, ring->previous) + connect_limit_ms(settings, ring->next) +
           settings.test_ms;
  }
  std::int64_t limit_ms = kGraceMs;
  for (const PairOrder& test : std::get<PairOrders>(order).tests) {
    limit_ms += connect_limit_ms(settings, test) + settings.test_ms;
    if (settings.gpu.gpus > 0) limit_ms += settings.gpu.gather_ms;
  }
  return limit_ms;
}

int run_probe_process(const std::vector<std::string>& arguments, const Environment& environment) {
  constexpr int kBadUse = 2;
  const auto task = read_probe_arguments(arguments);
  if (!task) return kBadUse;
  close_input();
  ProbeSettings settings = probe_settings(environment, *task);
  HostLook host(*task, environment);
  settings.look_at_host = [&host] { return host.look(); };
  if (settings.gpu.gpus > 0) settings.gpu.libraries = libraries_of(*task, environment);
  return run_probe(STDOUT_FILENO, settings);
}

}  // namespace elastic::health
