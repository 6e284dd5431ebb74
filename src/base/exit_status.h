#pragma once

#include <string>

namespace elastic {

// With it a worker says that no new start of its job will do better. The job is not restarted, and elastic-run ends
// with the same on every node, as it does where the job has failed alike twice: whoever requeues jobs by their exit
// status (Slurm's RequeueExit) can let this one lie.
inline constexpr int kDoNotRequeue = 93;

// How a process ended: by exit() with `code`, or by a signal (then `signal` is not 0).
struct ExitStatus {
  int code = 0;
  int signal = 0;
  bool core_dumped = false;

  bool success() const { return code == 0 && signal == 0; }
  bool is_final() const { return code == kDoNotRequeue && signal == 0; }
  // As Python and torchrun count it: the exit code, or minus the signal's number.
  int python_code() const { return signal != 0 ? -signal : code; }
  // "exited with code 3", "was killed by SIGSEGV (core dumped)".
  std::string text() const;
  bool operator==(const ExitStatus&) const = default;
};

}  // namespace elastic
