#include "cli/delegate.h"

#include <algorithm>
#include <utility>

#include "cli/argv_normalizer.h"
#include "cli/python_choice.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

constexpr const char* kTorchrun = "torchrun";

// Whether the command line or a variable asks for something else than a job. torchrun, which does not know these flags,
// would start a job. --help does not count: torchrun has a help of its own.
bool asks_for_no_job(const CanonicalLine& line, const Environment& environment) {
  const auto stands_there = [&](const Flag& flag) {
    return std::ranges::any_of(line.flags, [&](const FlagToken& token) { return token.flag == flag.id; });
  };
  return std::ranges::any_of(flag_table(), [&](const Flag& flag) {
    if (flag.mode == Mode::kJob || flag.mode == Mode::kHelp) return false;
    return stands_there(flag) ||
           (flag.has_variable && elastic::lookup(environment, variable_of(flag)).value_or("0") != "0");
  });
}

// The arguments without the options that torchrun does not have.
std::vector<std::string> for_torchrun(std::span<const std::string> arguments, const CanonicalLine& line,
                                      std::vector<std::string>& warnings) {
  std::vector<bool> dropped(arguments.size(), false);
  for (const FlagToken& token : line.flags) {
    if (flag_of(token.flag).family == Family::kTorchrun || token.flag == FlagId::kDryRun) continue;
    warnings.push_back(format("{}: torchrun has no such option; it is left out", token.typed));
  }
  // Every option with a letter is torchrun's, so a dropped option never shares an argument with a kept one.
  for (const FlagToken& token : line.flags) {
    if (flag_of(token.flag).family == Family::kTorchrun) continue;
    std::fill_n(dropped.begin() + static_cast<std::ptrdiff_t>(token.first), token.count, true);
  }
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!dropped[i]) kept.push_back(arguments[i]);
  }
  return kept;
}

void name_variables(const Environment& environment, std::vector<std::string>& warnings) {
  for (const Flag& flag : flag_table()) {
    if (flag.family == Family::kTorchrun || !flag.has_variable) continue;
    const auto value = elastic::lookup(environment, variable_of(flag));
    if (!value) continue;
    warnings.push_back(format("{}={}: torchrun does not read it", variable_of(flag), printable(*value)));
  }
}

}  // namespace

Result<std::optional<Delegation>> delegate(std::span<const std::string> arguments, const Environment& environment,
                                           const HostView& host) {
  const std::string wanted = elastic::lookup(environment, "ELASTIC_RUN_DELEGATE").value_or("");
  if (wanted.empty()) return std::nullopt;
  if (wanted != kTorchrun) {
    return fail(format("ELASTIC_RUN_DELEGATE={}", printable(wanted)), "not a launcher to delegate to",
                "set it to torchrun, or unset it");
  }
  Delegation delegation;
  std::vector<std::string> kept(arguments.begin(), arguments.end());
  if (const auto line = normalize_arguments(arguments)) {
    if (asks_for_no_job(*line, environment)) return std::nullopt;
    delegation.only_told = std::ranges::count(line->flags, FlagId::kDryRun, &FlagToken::flag) > 0;
    kept = for_torchrun(arguments, *line, delegation.warnings);
  }
  name_variables(environment, delegation.warnings);
  auto python = choose_python(environment, host);
  if (!python) return std::unexpected(std::move(python.error()));
  for (std::string& warning : python->warnings) delegation.warnings.push_back(std::move(warning));
  delegation.command = std::move(python->command);
  delegation.command.insert(delegation.command.end(), {"-m", "torch.distributed.run"});
  delegation.command.insert(delegation.command.end(), kept.begin(), kept.end());
  // torchrun would pass the job's secret on to its workers.
  delegation.environment = environment;
  std::erase_if(delegation.environment,
                [](const std::string& text) { return text.starts_with(format("{}=", run::kSecretVariable)); });
  return delegation;
}

}  // namespace elastic::cli
