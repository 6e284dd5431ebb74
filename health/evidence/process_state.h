#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace elastic::evidence {

// | a file of a process in /proc; the name of the kernel function that it waits in | {kProcFileBytes}; {kWaitNameBytes}
// | the rest is not read; the name is cut |
inline constexpr std::size_t kWaitNameBytes = 64;
inline constexpr std::size_t kProcFileBytes = 64 * 1024;

// The files of /proc/PID (or of /proc/PID/task/TID) as they were read; empty what could not be read. None of them takes
// the process's own locks, so that they can be read of a process that hangs in the kernel, too.
struct ProcessTexts {
  std::string_view stat{};
  std::string_view status{};
  std::string_view wchan{};
  std::string_view syscall{};
  std::string_view io{};
};

// What they say at one moment. Of another user's process wchan, syscall and io are unknown.
struct ProcessSample {
  char state = 0;                            // as in ps: R, S, D, T, t, Z, X, I; 0: the process is gone
  std::uint64_t started_ticks = 0;           // after boot: with the pid it names one process for ever
  std::optional<std::uint64_t> cpu_ticks{};  // in user and kernel mode, of this process or thread
  std::string wchan{};                       // the kernel function that it waits in; empty if none, or unknown
  std::optional<std::int64_t>
      syscall{};  // its number on this kind of processor; nothing while it runs, or outside of any
  std::optional<std::uint64_t> bytes{};  // read and written by system calls, or of disks where that is more
  std::optional<int> own_pid{};          // in the innermost pid namespace, by which NCCL's RAS names it
};

// Reads them. What is not there, or has another form, is unknown; the state is that of stat, else that of status.
ProcessSample read_process(const ProcessTexts& texts);

enum class ProcessClass : std::uint8_t {
  kRun,      // it computes
  kSleep,    // it waits, and a signal would wake it
  kDisk,     // it waits in the kernel, and not even SIGKILL wakes it (D)
  kStopped,  // by SIGSTOP, or by a debugger
  kGone,     // it has ended, or is a zombie
};

// The class of one process by two samples of it, the first one the earlier. It is kDisk or kSleep only if it was found
// waiting twice and used no more than a tenth of a processor between; `ticks_between` is that time in ticks. A wait of
// a moment is normal, so that a state D in one sample alone is kSleep.
ProcessClass class_of(const ProcessSample& first, const ProcessSample& second, std::uint64_t ticks_between);

// The processor time between two samples of the same process; nothing where either does not know it.
std::optional<std::uint64_t> ticks_used(const ProcessSample& first, const ProcessSample& second);

// For people: "sleeping in futex_do_wait, syscall 202".
std::string describe(ProcessClass what, const ProcessSample& sample);

}  // namespace elastic::evidence
