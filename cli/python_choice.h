#pragma once

#include <string>
#include <vector>

#include "cli/launch_plan.h"
#include "cli/run/worker_environment.h"
#include "src/base/environment.h"
#include "src/base/result.h"

namespace elastic::cli {

// The Python that runs the script.
struct Python {
  std::vector<std::string> command;   // argv up to Python's own arguments: its file, or a wrapper with its arguments
  std::string origin;                 // why this one, for --dry-run
  std::string title;                  // as torchrun's failure summary names it; "": by the script
  bool is_wrapper = false;            // PYTHON_EXEC starts Python elsewhere, where other files may be
  std::vector<std::string> warnings;  // of variables that name another Python
};

// Chooses the Python, in this order: PYTHON_EXEC (if it is set, nothing else is tried); the Python of the virtual or
// conda environment whose bin holds this program, as torchrun runs the Python that it was installed with; python3, then
// python on PATH; the one beside this program. VIRTUAL_ENV and CONDA_PREFIX do not choose: activating an environment
// puts its bin on PATH, so an environment that is not there, or behind another Python, is left over. Fails where there
// is no Python.
Result<Python> choose_python(const Environment& environment, const HostView& host);

}  // namespace elastic::cli
