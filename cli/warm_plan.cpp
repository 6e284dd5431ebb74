#include "cli/plan_parts.h"

#include <string>

#include "src/base/text.h"

namespace elastic::cli {
namespace {

warm::Mode mode_of(const std::string& word) {
  if (word == "on") return warm::Mode::kOn;
  return word == "auto" ? warm::Mode::kAuto : warm::Mode::kOff;
}

// Why the workers of this command line cannot be warm; empty: they can.
std::string why_never(const ParsedFlags& flags, const CheckedFlags& checked, const WorkerProgram& program) {
  if (checked.no_python) return "--no-python runs no Python";
  if (checked.run_path) return "--run-path starts the script in another way";
  if (!flags.text(FlagId::kWrap).empty()) return "--wrap starts other programs";
  if (!flags.text(FlagId::kNumaBinding).empty()) return "--numa-binding asks for CPUs of each worker's own";
  if (flags.on(FlagId::kNumaAffinity)) return "--numa-affinity asks for CPUs of each worker's own";
  if (program.is_wrapper) return "PYTHON_EXEC is no Python itself";
  const std::string& script = program.arguments.at(program.script);
  if (script.find('$') != std::string::npos) return "the script is another one for each rank";
  if (script.ends_with(".zip") || script.ends_with(".pyz")) return "the script is an archive";
  return {};
}

}  // namespace

void plan_warm(const ParsedFlags& flags, const CheckedFlags& checked, const WorkerProgram& program, LaunchPlan& plan) {
  warm::WarmLaunch& warm = plan.settings.warm;
  const std::string& mode = flags.text(FlagId::kWarmWorkers);
  warm.rules.mode = mode_of(mode);
  if (warm.rules.mode == warm::Mode::kOff) return;
  warm.rules.after_ms = static_cast<std::int64_t>(flags.number(FlagId::kWarmAfter) * 1000);
  warm.rules.wanted = flags.text(FlagId::kWarmImport);
  warm.rules.never = why_never(flags, checked, program);
  plan.entry("warm workers", warm.rules.never.empty() ? mode : format("{}, but {}", mode, warm.rules.never),
             flags.origin_text(FlagId::kWarmWorkers));
  if (!warm.rules.never.empty()) return;
  warm.is_module = checked.module;
  warm.target = program.arguments.at(program.script);
  const std::size_t options = program.script - (checked.module ? 1 : 0);
  warm.options.assign(program.arguments.begin(), program.arguments.begin() + static_cast<std::ptrdiff_t>(options));
}

}  // namespace elastic::cli
