#pragma once

#include <string>
#include <vector>

#include "cli/flag_checks.h"
#include "cli/launch_plan.h"
#include "cli/run/worker_environment.h"
#include "src/base/environment.h"
#include "src/base/result.h"

namespace elastic::cli {

// The program that each worker executes.
struct WorkerProgram {
  std::string path;                    // the file
  std::string origin;                  // how it was found: "command line", "PATH", "environment: PYTHON_EXEC", ...
  std::vector<std::string> arguments;  // argv, macros not yet replaced
  std::string title;                   // as torchrun's failure summary names it
  std::vector<std::string> warnings;
  std::size_t script = 0;   // which of the arguments is SCRIPT
  bool is_wrapper = false;  // PYTHON_EXEC is one
};

// Finds the program: the Python that cli/python_choice.h chooses, with `-u` before the script, or with --no-python the
// script itself, searched on PATH if it has no '/'. Fails where there is no Python or no such script, or where it
// cannot be read or executed. A wrapper finds its script itself, so that one is not looked at.
Result<WorkerProgram> find_worker_program(const ParsedFlags& flags, const CheckedFlags& checked,
                                          const Environment& environment, const HostView& host);

}  // namespace elastic::cli
