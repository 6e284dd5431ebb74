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
  std::vector<std::string> command;   // its file, and before Python's own arguments those of a wrapper
  std::string origin;                 // why this one, for --dry-run
  std::string title;                  // as torchrun's failure summary names it; "": by the script
  bool is_wrapper = false;            // PYTHON_EXEC starts Python elsewhere, where other files may be
  std::vector<std::string> warnings;  // of variables that name another Python
};

// PYTHON_EXEC; else the one of the virtual or conda environment in whose bin this program lies, as torchrun runs the
// one it was installed with; else python3, else python on PATH; else the one beside this program. VIRTUAL_ENV and
// CONDA_PREFIX choose none: activating puts the environment's bin on PATH, and one that is not there, or behind another
// Python, was left by somebody else. Fails where there is none; with PYTHON_EXEC no other is looked for.
Result<Python> choose_python(const Environment& environment, const HostView& host);

}  // namespace elastic::cli
