#pragma once

#include <string>

namespace elastic {

// The exit code by which a worker says that restarting its job is of no use. The job is not restarted, and elastic-run
// exits with the same code on every node. It does so, too, where the job has failed twice in the same way. A batch
// system that requeues jobs by their exit status (Slurm's RequeueExit) can leave this job alone.
inline constexpr int kDoNotRequeue = 93;

// How a process ended: by exit() with `code`, or by a signal (then `signal` is not 0).
struct ExitStatus {
  int code = 0;
  int signal = 0;
  bool core_dumped = false;

  bool success() const { return code == 0 && signal == 0; }
  bool is_final() const { return code == kDoNotRequeue && signal == 0; }
  // The exit code as Python and torchrun have it: the code, or minus the signal's number.
  int python_code() const { return signal != 0 ? -signal : code; }
  // "exited with code 3", "was killed by SIGSEGV (core dumped)".
  std::string text() const;
  bool operator==(const ExitStatus&) const = default;
  static void fields(auto& io, auto& v) {
    io("code", v.code);
    io("signal", v.signal);
    io("core_dumped", v.core_dumped);
  }
};

}  // namespace elastic
