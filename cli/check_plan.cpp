#include "cli/check_plan.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/gpu_plan.h"
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

// What the check consists of on this node.
Status plan_tests(const ParsedFlags& flags, const Environment& environment, const HostView& host, LaunchPlan& plan) {
  plan.settings.check = {.hook = flags.text(FlagId::kHealthHook),
                         .external = flags.text(FlagId::kCheckProbe),
                         .nccl_lib = flags.text(FlagId::kNcclLib),
                         .gpu_program = flags.text(FlagId::kProbePath),
                         .page = flags.text(FlagId::kHealthReport)};
  const std::string& accelerator = flags.text(FlagId::kAccelerator);
  if (accelerator != "cpu" && accelerator != flag_of(FlagId::kAccelerator).by_default) {
    plan.warnings.push_back(format("{}: such devices are not tested; --network-check looks at the host and its network",
                                   flags.input(FlagId::kAccelerator)));
  }
  plan.settings.node.group = flags.text(FlagId::kNodeGroup);
  if (plan.settings.node.group.empty())
    plan.settings.node.group = elastic::lookup(environment, "scheduling/rack-id").value_or("");
  for (const FlagId id : {FlagId::kHealthHook, FlagId::kCheckProbe}) {
    const std::string_view command = flags.text(id);
    const char* name = id == FlagId::kHealthHook ? "health hook" : "check probe";
    if (!command.empty()) plan.entries.push_back({name, printable(command, 4096), flags.origin_text(id)});
  }
  if (Status status = plan_gpu_test(flags, environment, host, plan); !status) return status;
  if (Status status = check_file(flags, FlagId::kNcclLib, false, host); !status) return status;
  return check_file(flags, FlagId::kProbePath, true, host);
}

}  // namespace

// As in dlrover-run, any of three options asks for the check.
Status plan_check(const ParsedFlags& flags, const CheckedFlags& checked, const Environment& environment,
                  const HostView& host, LaunchPlan& plan) {
  using When = health::CheckRules::When;
  constexpr std::int64_t kNodesThatAreChecked = 4;  // --auto-config checks jobs of at least so many nodes
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
      plan.warnings.push_back(format("{}: it is ignored without a check; add --network-check, or use --precheck=2",
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
    plan.warnings.push_back(format("{}: nothing is measured, as one node alone has no link", flags.input(asked)));
  }
  check.measures_all = measures;
  check.only = flags.on(FlagId::kCheckOnly);
  plan.entries.push_back({"check",
                          format("{}{}{}", check.only ? "only the check runs" : policy,
                                 check.excludes_stragglers ? "; stragglers are excluded" : "",
                                 measures ? "; an all-gather of all nodes is measured" : ""),
                          origin});
  return plan_tests(flags, environment, host, plan);
}

}  // namespace elastic::cli
