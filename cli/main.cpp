// The program: from argv and environment to an exit status.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "cli/delegate.h"
#include "cli/detect/detect.h"
#include "cli/dry_run.h"
#include "cli/flag_checks.h"
#include "cli/help.h"
#include "cli/host_view.h"
#include "cli/launch_plan.h"
#include "cli/parse.h"
#include "cli/rendezvous_plan.h"
#include "cli/request_plan.h"
#include "cli/run/commands.h"
#include "cli/run/launch.h"
#include "cli/run/worker_environment.h"
#include "health/evidence_reader/reader_process.h"
#include "health/probe/probe_process.h"
#include "health/stack_reader/reader_process.h"
#include "rendezvous/transport/hosting.h"
#include "src/base/environment.h"
#include "src/base/log.h"
#include "src/base/patience.h"
#include "src/base/program_name.h"
#include "src/base/text.h"
#include "src/process/spawn.h"

namespace {

using namespace elastic;

constexpr int kExitUsage = 2;
constexpr std::size_t kHostsBytes = 1 << 20;  // a longer /etc/hosts is not read

int refuse(const Error& error) {
  log::critical(error.text());
  return kExitUsage;
}

// Refuses a job. The reason is also written to the error file of the process that started us, if that asks for one.
int refuse_job(const Error& error, const Environment& environment) {
  run::tell_refusal(error, elastic::lookup(environment, "TORCHELASTIC_ERROR_FILE").value_or(""));
  return kExitUsage;
}

// Prints what was asked for to stdout. It fails only if the reader has gone.
int print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return written && std::fflush(stdout) == 0 ? 0 : 1;
}

// The log level comes from the flag or its variable, or else from LOGLEVEL. Other programs read LOGLEVEL, too, so a
// value that elastic-run does not know is only worth a warning.
Status set_up_log(const cli::ParsedFlags& flags, const Environment& environment) {
  if (flags.text(cli::FlagId::kLogFormat) == "json") log::set_format(log::Format::kJson);
  if (flags.is_given(cli::FlagId::kLogLevel)) {
    const auto level = log::parse_level(flags.text(cli::FlagId::kLogLevel), flags.input(cli::FlagId::kLogLevel));
    if (!level) return std::unexpected(level.error());
    log::set_level(*level);
    return {};
  }
  const auto wanted = elastic::lookup(environment, "LOGLEVEL");
  if (!wanted || trim(*wanted).empty()) return {};
  const auto level = log::parse_level(*wanted, format("LOGLEVEL={}", printable(*wanted)));
  if (level) {
    log::set_level(*level);
  } else {
    log::warning("loglevel", level.error().text());
  }
  return {};
}

// On a machine that is kept busy on purpose, by tests.
Status set_up_patience(const Environment& environment) {
  const auto text = elastic::lookup(environment, "ELASTIC_RUN_PATIENCE");
  if (!text) return {};
  const auto factor = parse_patience(*text);
  if (!factor) {
    return fail(format("ELASTIC_RUN_PATIENCE={}", printable(*text)), "it is no whole number from 1 to 100",
                "unset it: it is for tests on a busy machine");
  }
  set_patience(*factor);
  return {};
}

// PyTorch's logger for events takes its level from LOGLEVEL alone, and logs all of them as INFO.
bool prints_torch_events(const Environment& environment) {
  const auto level = log::parse_level(elastic::lookup(environment, "LOGLEVEL").value_or("INFO"), "LOGLEVEL");
  return !level || *level <= log::Level::kInfo;
}

// Carries out what has been planned, or says why it could not be.
template <class Planned>
int carry_out(const Result<Planned>& planned, int (*act)(const Planned&)) {
  return planned ? act(*planned) : refuse(planned.error());
}

int print_report(const cli::ParsedFlags& flags) {
  std::vector<std::string> directories{flags.text(cli::FlagId::kReport)};
  if (!flags.script.empty()) directories.push_back(flags.script);
  directories.insert(directories.end(), flags.script_arguments.begin(), flags.script_arguments.end());
  return run::print_report(directories, flags.text(cli::FlagId::kHtml));
}

int run_job(cli::ParsedFlags flags, const Environment& environment, const cli::HostView& host,
            const process::InheritedState& inherited, const run::ProcessTitle& title) {
  if (const Status set = set_up_patience(environment); !set) return refuse_job(set.error(), environment);
  const auto detected = cli::detect::detect(
      flags, [&](const std::string& name) { return elastic::lookup(environment, name); },
      [&](const std::string& path) { return host.read_file(path, kHostsBytes).value_or(""); });
  if (!detected) return refuse_job(detected.error(), environment);
  for (const std::string& note : detected->notes) log::answer("detected", note);
  for (const std::string& warning : detected->warnings) log::warning("detected", warning);
  auto plan = cli::make_launch_plan(flags, environment, host, *detected);
  if (!plan) return refuse_job(plan.error(), environment);
  for (const std::string& warning : cli::unmet_warnings(flags)) log::warning("launch_plan", warning);
  for (const std::string& warning : plan->warnings) log::warning("launch_plan", warning);
  if (flags.is_set(cli::FlagId::kDryRun)) {
    if (!plan->settings.rendezvous.alone) {
      plan->entry("coordinator", transport::who_hosts(plan->settings.rendezvous), "the endpoint");
    }
    const bool json = flags.text(cli::FlagId::kDryRun) == "json";
    return print(json ? cli::dry_run_json(*plan, flags) : cli::dry_run_text(*plan));
  }
  if (plan->settings.local_tasks.index > 0) return run::wait_for_launcher(plan->settings.local_tasks);
  if (plan->settings.torch_events) plan->settings.torch_events = prints_torch_events(environment);
  return run::launch(plan->settings, inherited, title);
}

// Blocks SIGTTOU, so that a terminal with `stty tostop` does not stop a background job that prints. Workers get their
// signal mask from `InheritedState`.
void let_background_write() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTTOU);
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

// Becomes torchrun, before anything is started.
int hand_over_to_torchrun(const cli::Delegation& delegation, const process::InheritedState& inherited) {
  if (delegation.only_told) return print(command_text(delegation.command) + "\n");
  for (const std::string& warning : delegation.warnings) log::warning("delegate", warning);
  log::answer("delegate", format("delegating to torchrun: {}", command_text(delegation.command)));
  const std::vector<std::string>& command = delegation.command;
  return refuse(process::become_program(command.front(), command, delegation.environment, inherited));
}

// Keeps the job's secret out of /proc/PID/environ.
void hide_secret() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::size_t name = std::strlen(run::kSecretVariable);
    if (std::strncmp(*entry, run::kSecretVariable, name) != 0 || (*entry)[name] != '=') continue;
    explicit_bzero(*entry + name + 1, std::strlen(*entry + name + 1));
  }
}

// The kernel lays the arguments out one behind the other.
run::ProcessTitle title_of(int argc, char** argv) {
  if (argc == 0) return {};
  char* end = argv[argc - 1] + std::strlen(argv[argc - 1]) + 1;
  return {argv[0], static_cast<std::size_t>(end - argv[0])};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 0) set_program_name(argv[0]);
  const auto inherited = process::InheritedState::capture();
  let_background_write();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) environment.emplace_back(*entry);
  hide_secret();
  if (!arguments.empty() && arguments[0] == health::kProbeArgument) {
    return health::run_probe_process(arguments, environment);
  }
  if (!arguments.empty() && arguments[0] == stacks::kReaderArgument) return stacks::run_reader_process();
  if (!arguments.empty() && arguments[0] == evidence::kEvidenceArgument) {
    return evidence::run_evidence_process(environment);
  }

  const cli::ThisHost host;
  const auto delegation = cli::delegate(arguments, environment, host);
  if (!delegation) return refuse_job(delegation.error(), environment);
  if (*delegation) return hand_over_to_torchrun(**delegation, inherited);

  Environment variables;  // few among many, of which each flag's is looked for
  std::ranges::copy_if(environment, std::back_inserter(variables),
                       [](const std::string& entry) { return entry.starts_with(cli::kVariablePrefix); });
  const auto lookup = [&](const std::string& name) { return elastic::lookup(variables, name); };
  const auto flags = cli::parse_command_line(arguments, lookup);
  if (!flags) {
    const cli::RefusalStyle style = cli::refusal_style(arguments, lookup);
    if (style.in_json) log::set_format(log::Format::kJson);
    return style.of_job ? refuse_job(flags.error(), environment) : refuse(flags.error());
  }
  using cli::Mode;
  switch (flags->mode) {
    case Mode::kHelp: return print(cli::help_text());
    case Mode::kVersion: return print(cli::version_text());
    case Mode::kPrintCompletion: return print(cli::completion_script(flags->text(cli::FlagId::kPrintCompletion)));
    default: break;
  }
  if (const Status set = set_up_log(*flags, environment); !set) {
    return cli::stands_alone(flags->mode) ? refuse(set.error()) : refuse_job(set.error(), environment);
  }
  switch (flags->mode) {
    case Mode::kStoreOnly: return run::serve_store(static_cast<std::uint16_t>(flags->integer(cli::FlagId::kPort)));
    case Mode::kCoordinatorOnly:
      return carry_out(cli::plan_coordinator_only(*flags, environment, host), run::serve_coordinator);
    case Mode::kReport: return print_report(*flags);
    case Mode::kReplay: return run::print_replay(flags->text(cli::FlagId::kReplay));
    case Mode::kStatus: return carry_out(cli::plan_status(*flags, environment, host), run::print_status);
    case Mode::kStacks: {
      const auto request = cli::plan_stacks(*flags, environment, host);
      return request ? run::print_stacks(*request, inherited) : refuse(request.error());
    }
    case Mode::kDrain:
    case Mode::kStop: return carry_out(cli::plan_order(*flags, environment, host), run::give_order);
    case Mode::kStatusKey: {
      const auto key = cli::plan_status_key(*flags, environment, host);
      return key ? print(*key + "\n") : refuse(key.error());
    }
    default: return run_job(*flags, environment, host, inherited, title_of(argc, argv));
  }
}
