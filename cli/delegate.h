#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/launch_plan.h"
#include "cli/run/worker_environment.h"
#include "src/base/result.h"

namespace elastic::cli {

// How torchrun is started in place of this launcher.
struct Delegation {
  std::vector<std::string> command;   // argv; the first is the file to execute
  Environment environment;            // what torchrun gets
  std::vector<std::string> warnings;  // of what torchrun does not have
  bool only_told = false;             // --dry-run: the command is printed, and not executed
};

// With ELASTIC_RUN_DELEGATE=torchrun, makes torchrun's command: the Python that the workers would have, with
// `-m torch.distributed.run` (a torchrun on PATH may be a link to elastic-run) and the same arguments. Options and PET_
// variables that torchrun does not have are left out, each with a warning; the script and everything after it stay as
// they are. Returns nothing where no delegation is wanted, and where the command line asks for something else than a
// job
// (--status, --report, --version, ...). A command line that elastic-run cannot read is handed over as it is, since
// torchrun may know it. Fails on another value of the variable, and where there is no Python.
Result<std::optional<Delegation>> delegate(std::span<const std::string> arguments, const Environment& environment,
                                           const HostView& host);

}  // namespace elastic::cli
