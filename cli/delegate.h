#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/launch_plan.h"
#include "cli/run/worker_environment.h"
#include "src/base/result.h"

namespace elastic::cli {

// The way back: torchrun in the place of this launcher.
struct Delegation {
  std::vector<std::string> command;   // argv; the first is the file to execute
  Environment environment;            // what torchrun gets
  std::vector<std::string> warnings;  // of what torchrun does not have
  bool only_told = false;             // --dry-run: the command is printed, and not executed

  // As a shell reads it.
  std::string command_line() const;
};

// Where ELASTIC_RUN_DELEGATE is torchrun: the Python that the workers would have, with `-m torch.distributed.run` (a
// torchrun on PATH may be a link to us) and the same arguments. Options and PET_ variables that are not torchrun's are
// left out and named; the script and all behind it stay as they are. Nothing where no delegation is wanted, and where
// the command line asks for something else than a job (--status, --report, --version, ...). A command line that cannot
// be read here goes on untouched: what to say of it is torchrun's. Fails on another value of the variable, and where
// there is no Python.
Result<std::optional<Delegation>> delegate(std::span<const std::string> arguments, const Environment& environment,
                                           const HostView& host);

}  // namespace elastic::cli
