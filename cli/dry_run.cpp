#include "cli/dry_run.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/plan_parts.h"
#include "cli/run/hang_variables.h"
#include "rendezvous/membership/ranks.h"
#include "src/base/check.h"
#include "src/base/json.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

// Values that only a real launch knows.
constexpr const char* kFreePort = "<a free port>";
constexpr const char* kRunDirectory = "<run directory>";
constexpr const char* kJobDirectory = "<directory of the job>";
constexpr const char* kRankZero = "<the address of node rank 0>";
constexpr const char* kRound = "<by the round>";
// Variables that a node of several learns only when a round begins.
constexpr std::array<std::string_view, 6> kOfTheRound = {"RANK",       "GROUP_RANK",      "ROLE_RANK",
                                                         "WORLD_SIZE", "ROLE_WORLD_SIZE", "GROUP_WORLD_SIZE"};

std::vector<Variable> channels_of(const run::LaunchSettings& settings, int local_rank) {
  std::vector<Variable> out{{"ELASTIC_RUN_PROGRESS", format("{}/progress_{}", kJobDirectory, local_rank)}};
  if (settings.progress.reads_metrics_file) {
    out.emplace_back("RUNTIME_METRICS_PATH", format("{}/runtime_metrics_{}.json", kJobDirectory, local_rank));
  }
  if (settings.tuning.gives_file) {
    out.emplace_back("DLROVER_PARAL_CONFIG_PATH", format("{}/auto_paral_config.json", kJobDirectory));
  }
  if (settings.progress.serves_nvrx) {
    out.emplace_back("FT_RANK_MONITOR_IPC_SOCKET", format("{}/nvrx_{}", kJobDirectory, local_rank));
    out.emplace_back("FT_LAUNCHER_IPC_SOCKET", format("{}/nvrx_launcher", kJobDirectory));
  }
  if (settings.file_timers.are_served) {
    const std::string& path = settings.file_timers.path;
    out.emplace_back("TORCHELASTIC_TIMER_FILE", path.empty() ? format("{}/file_timer", kJobDirectory) : path);
  }
  return out;
}

// Those of --hang=restart.
std::vector<Variable> hang_of(const run::LaunchSettings& settings) {
  if (!settings.node.rules.restarts_hangs()) return {};
  std::vector<Variable> out = run::hang_variables(
      settings.worker.environment,
      {.pipes = kJobDirectory, .dumps = settings.logs.enabled ? kRunDirectory : kJobDirectory, .ras_port = 1});
  for (auto& [name, value] : out) {
    if (name == "NCCL_RAS_ADDR") value = format("localhost:{}", kFreePort);
  }
  return out;
}

std::vector<Variable> variables_of(const LaunchPlan& plan, int local_rank) {
  const run::LaunchSettings& settings = plan.settings;
  const std::vector<protocol::NodePlace> places =
      membership::assign_places({{settings.node.local_world_size, settings.node.role}});
  const bool alone = settings.rendezvous.alone;
  const bool fixed = settings.store.port != 0;
  const std::string error_file = format("{}/attempt_0/{}/error.json", kRunDirectory, local_rank);
  const run::WorkerPlace place{
      .local_rank = local_rank,
      .restart_count = 0,
      .max_restarts = settings.max_restarts,
      .node = places.front(),
      .master_addr = settings.store.master_addr.empty() ? kRankZero : settings.store.master_addr,
      .master_port = fixed ? format("{}", settings.store.port) : kFreePort,
      .error_file = settings.logs.enabled ? error_file : "",
      .fence = kRound,
      .channels = channels_of(settings, local_rank),
      .hang = hang_of(settings),
  };
  auto variables = run::worker_variables(settings.worker, place);
  ELASTIC_CHECK(variables.has_value());  // the plan has tried every local rank
  if (alone) return *variables;
  for (auto& [name, value] : *variables) {
    if (std::ranges::find(kOfTheRound, name) != kOfTheRound.end()) value = kRound;
  }
  return *variables;
}

// The worker's command, under that of --wrap if the worker's rank is known in advance.
run::WorkerCommand command_of(const run::LaunchSettings& settings, int local_rank) {
  run::WorkerCommand own{settings.program, run::worker_arguments(settings.worker, local_rank)};
  if (!settings.rendezvous.alone) return own;
  return run::wrapped(settings.wrap, {.rank = local_rank, .local_rank = local_rank, .job = settings.worker.run_id},
                      std::move(own));
}

Json json_of(const numa::Placement& placement) {
  const auto numbers = [](const std::vector<int>& from) {
    Json array = Json::array();
    for (const int number : from) array.push(number);
    return array;
  };
  const bool preferred = placement.memory == numa::Memory::kPreferred;
  return Json::object()
      .set("cpus", numbers(placement.cpus))
      .set("memory_policy", placement.nodes.empty() ? Json() : Json(preferred ? "preferred" : "bind"))
      .set("memory_nodes", numbers(placement.nodes));
}

}  // namespace

std::string dry_run_text(const LaunchPlan& plan) {
  std::string out;
  std::size_t name_width = 0;
  std::size_t value_width = 0;
  for (const PlanEntry& entry : plan.entries) {
    name_width = std::max(name_width, entry.name.size());
    if (entry.value.size() <= 40) value_width = std::max(value_width, entry.value.size());
  }
  for (const PlanEntry& entry : plan.entries) {
    out += format("{:<{}}  {:<{}}  ({})\n", entry.name, name_width, entry.value, value_width, entry.origin);
  }
  const int workers = plan.settings.node.local_world_size;
  for (int rank = 0; rank < workers; ++rank) {
    out += format("\nlocal rank {}: {}\n", rank, command_text(command_of(plan.settings, rank).arguments));
    if (const auto& placements = plan.settings.placements; !placements.empty()) {
      out += format("  {}\n", text_of(placements.at(static_cast<std::size_t>(rank))));
    }
    for (const auto& [name, value] : variables_of(plan, rank)) {
      out += format("  {}={}\n", name, printable(value, 4096));
    }
  }
  return out;
}

std::string dry_run_json(const LaunchPlan& plan, const ParsedFlags& flags) {
  Json entries = Json::object();
  for (const PlanEntry& entry : plan.entries) {
    entries.set(entry.name, Json::object().set("value", entry.value).set("origin", entry.origin));
  }
  Json values = Json::object();
  for (const Flag& flag : flag_table()) {
    const FlagValue& value = flags[flag.id];
    values.set(
        dest_of(flag),
        Json::object().set("value", value.text ? Json(*value.text) : Json()).set("origin", flags.origin_text(flag.id)));
  }
  Json workers = Json::array();
  for (int rank = 0; rank < plan.settings.node.local_world_size; ++rank) {
    run::WorkerCommand worker = command_of(plan.settings, rank);
    Json command = Json::array();
    for (std::string& argument : worker.arguments) command.push(std::move(argument));
    Json environment = Json::object();
    for (const auto& [name, value] : variables_of(plan, rank)) environment.set(name, value);
    Json shown = Json::object()
                     .set("local_rank", rank)
                     .set("program", std::move(worker.program))
                     .set("command", std::move(command))
                     .set("environment", std::move(environment));
    if (const auto& placements = plan.settings.placements; !placements.empty()) {
      shown.set("binding", json_of(placements.at(static_cast<std::size_t>(rank))));
    }
    workers.push(std::move(shown));
  }
  Json warnings = Json::array();
  for (const std::string& warning : plan.warnings) warnings.push(warning);
  return Json::object()
             .set("version", ELASTIC_RUN_VERSION)
             .set("plan", std::move(entries))
             .set("flags", std::move(values))
             .set("warnings", std::move(warnings))
             .set("workers", std::move(workers))
             .dump(2) +
         "\n";
}

}  // namespace elastic::cli
