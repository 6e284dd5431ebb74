#include "cli/plan_parts.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "health/messages/messages.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

// A file that the check is to use must be there: otherwise the check would report that it has nothing to test with.
Status check_file(const ParsedFlags& flags, FlagId flag, bool is_program, const HostView& host) {
  const std::string& path = flags.text(flag);
  if (path.empty()) return {};
  const HostView::PathFacts facts = host.look_at(path);
  const char* remedy =
      is_program ? "name a program, or leave the option out" : "name a libnccl.so.2, or leave the option out";
  if (!facts.exists) return fail(flags.input(flag), "no such file", remedy);
  if (facts.directory) return fail(flags.input(flag), "it is a directory", remedy);
  if (is_program && !facts.executable) return fail(flags.input(flag), "it is not executable", "chmod +x it");
  return {};
}

// Plans how many GPUs the check before a launch tests: those that its workers see, unless ELASTIC_RUN_PROBE_GPUS,
// --accelerator or --check-probe say otherwise. On a host without GPUs the plan has no line about them. Fails where the
// variable cannot be read.
Status plan_gpu_test(const ParsedFlags& flags, const Environment& environment, const HostView& host, LaunchPlan& plan) {
  constexpr const char* kVariable = "ELASTIC_RUN_PROBE_GPUS";
  const auto asked = elastic::lookup(environment, kVariable);
  // GPUs that perhaps no worker will use are not tested: others may be using them, and a broken one does no harm.
  const int visible = host.visible_gpus(elastic::lookup(environment, "CUDA_VISIBLE_DEVICES"));
  int count = std::min({visible, plan.settings.node.local_world_size, health::kMostGpus});
  std::string origin = count < visible ? "one visible GPU for each worker" : "visible GPUs";
  if (asked && *asked != "auto") {
    const auto number = *asked == "off" ? std::optional<std::int64_t>(0) : parse_int(*asked);
    if (!number || *number < 0 || *number > health::kMostGpus) {
      return fail(format("{}={}", kVariable, printable(*asked)),
                  format("not auto, off or a number of GPUs from 0 to {}", health::kMostGpus),
                  "unset it to test the GPUs that workers see, or set it to off");
    }
    count = static_cast<int>(*number);
    origin = format("environment: {}", kVariable);
  }
  const bool is_told = count > 0 || (asked && *asked != "auto");
  for (const FlagId id : {FlagId::kAccelerator, FlagId::kCheckProbe}) {
    if (flags.text(id) == flag_of(id).by_default.value_or("") || count == 0) continue;
    count = 0;
    origin = flags.origin_text(id);
  }
  plan.settings.check.gpus = count;
  if (is_told) plan.entry("GPUs to test", count == 0 ? "none" : format("{}", count), std::move(origin));
  return {};
}

// What the check consists of on this node.
Status plan_tests(const ParsedFlags& flags, const Environment& environment, const HostView& host, LaunchPlan& plan) {
  plan.settings.check = {.hook = flags.text(FlagId::kHealthHook),
                         .external = flags.text(FlagId::kCheckProbe),
                         .nccl_lib = flags.text(FlagId::kNcclLib),
                         .gpu_program = flags.text(FlagId::kProbePath),
                         .page = flags.text(FlagId::kHealthReport)};
  const std::string& accelerator = flags.text(FlagId::kAccelerator);
  if (accelerator != "cpu" && accelerator != flag_of(FlagId::kAccelerator).by_default) {
    plan.warn(format("{}: such devices are not tested; --network-check looks at the host and its network",
                     flags.input(FlagId::kAccelerator)));
  }
  plan.settings.node.group = flags.text(FlagId::kNodeGroup);
  if (plan.settings.node.group.empty())
    plan.settings.node.group = elastic::lookup(environment, "scheduling/rack-id").value_or("");
  for (const FlagId id : {FlagId::kHealthHook, FlagId::kCheckProbe}) {
    const std::string_view command = flags.text(id);
    const char* name = id == FlagId::kHealthHook ? "health hook" : "check probe";
    if (!command.empty()) plan.entry(name, printable(command, 4096), flags.origin_text(id));
  }
  if (Status status = plan_gpu_test(flags, environment, host, plan); !status) return status;
  if (Status status = check_file(flags, FlagId::kNcclLib, false, host); !status) return status;
  return check_file(flags, FlagId::kProbePath, true, host);
}

// The name of the file is NVRx's.
Status plan_segment_file(const ParsedFlags& flags, const Environment& environment, LaunchPlan& plan) {
  const std::string& directory = flags.text(FlagId::kSegmentHealthDir);
  if (directory.empty()) return {};
  if (!directory.starts_with('/')) {
    return fail(flags.input(FlagId::kSegmentHealthDir), "it is not an absolute path",
                "name the directory from / on: all nodes read the same one");
  }
  const auto id = [&](const char* name) {
    const auto value = elastic::lookup(environment, name);
    return value && parse_int(*value).value_or(-1) >= 0 ? value : std::nullopt;
  };
  const auto array = id("SLURM_ARRAY_JOB_ID");
  const auto task = id("SLURM_ARRAY_TASK_ID");
  const auto job = id("SLURM_JOB_ID");
  const bool is_task = array && task;
  if (!is_task && !job) {
    plan.warn(
        format("{}: it is ignored, as neither SLURM_JOB_ID nor SLURM_ARRAY_JOB_ID and SLURM_ARRAY_TASK_ID say "
               "which file is this node's",
               flags.input(FlagId::kSegmentHealthDir)));
    return {};
  }
  plan.settings.segment_file =
      format("{}/segment_health_check.{}.{}", directory, is_task ? *array : *job, is_task ? *task : *job);
  plan.entry("segment file", printable(plan.settings.segment_file, 4096), flags.origin_text(FlagId::kSegmentHealthDir));
  return {};
}

}  // namespace

// As in dlrover-run, any of three options asks for the check.
Status plan_check(const ParsedFlags& flags, const CheckedFlags& checked, const Environment& environment,
                  const HostView& host, LaunchPlan& plan) {
  using When = health::CheckRules::When;
  constexpr std::int64_t kNodesThatAreChecked = 4;  // --auto-config checks jobs of at least so many nodes
  if (Status status = plan_segment_file(flags, environment, plan); !status) return status;
  std::string origin;
  if (flags.on(FlagId::kNetworkCheck)) {
    origin = flags.origin_text(FlagId::kNetworkCheck);
  } else if (flags.on(FlagId::kCheckOnly)) {
    origin = flags.origin_text(FlagId::kCheckOnly);
  } else if (flags.text(FlagId::kPrecheck) != "0") {
    origin = flags.origin_text(FlagId::kPrecheck);
  } else if (flags.on(FlagId::kAutoConfig) && checked.nodes.min >= kNodesThatAreChecked) {
    origin = "--auto_config: a job of many nodes";
  } else {
    // dlrover-run, too, measures only what it checks.
    if (flags.on(FlagId::kCommPerfTest)) {
      plan.warn(format("{}: it is ignored without a check; add --network-check, or use --precheck=2",
                       flags.input(FlagId::kCommPerfTest)));
    }
    // A hang for which the links may be why asks for it, too.
    return flags.text(FlagId::kHang) == "restart" ? plan_tests(flags, environment, host, plan) : Status{};
  }
  health::CheckRules& check = plan.settings.node.check;
  const std::string_view policy = flags.text(FlagId::kCheckPolicy);
  check.when = policy == "always" ? When::kAlways : policy == "first" ? When::kFirst : When::kSuspect;
  check.excludes_stragglers = flags.on(FlagId::kExcludeStraggler);
  const bool measures = flags.on(FlagId::kCommPerfTest) || flags.text(FlagId::kPrecheck) == "2";
  if (measures && checked.nodes.max == 1) {
    const FlagId asked = flags.on(FlagId::kCommPerfTest) ? FlagId::kCommPerfTest : FlagId::kPrecheck;
    plan.warn(format("{}: nothing is measured, as one node alone has no link", flags.input(asked)));
  }
  check.measures_all = measures;
  check.only = flags.on(FlagId::kCheckOnly);
  plan.entry("check",
             format("{}{}{}", check.only ? "only the check runs" : policy,
                    check.excludes_stragglers ? "; stragglers are excluded" : "",
                    measures ? "; an all-gather of all nodes is measured" : ""),
             origin);
  return plan_tests(flags, environment, host, plan);
}

}  // namespace elastic::cli
