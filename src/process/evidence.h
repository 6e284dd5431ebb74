#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/unique_fd.h"

// What the system knows about the death of a process. Files are looked for below `root`, which is
// "/" but for tests.
namespace elastic::process {

// Kills for lack of memory that the kernel has counted, among the processes of our cgroup. The
// count is that of version 1 (memory.oom_control: the cgroup itself, Linux 4.13) or 2
// (memory.events: those below it too; of the nearest cgroup upwards that has it), or else of the
// whole host (/proc/vmstat).
class OomCounter {
 public:
  // Finds the file and marks the count as it is.
  explicit OomCounter(const std::string& root = "/");

  struct Kills {
    std::uint64_t count = 0;
    // What was read, for the report: "/sys/fs/cgroup/memory.events: oom_kill 3 (2 before)".
    std::string evidence;
  };
  // The kills since the mark; none if there is no file that counts them.
  Kills since_mark() const;
  void mark();

  // The file that is read; empty if there is none.
  const std::string& file() const { return file_; }
  // Whether the count is that of all processes of the host, so that a kill need not have been one of ours.
  bool is_whole_host() const { return whole_host_; }

 private:
  std::optional<std::uint64_t> read() const;
  bool use(std::string file);

  std::string file_;
  bool whole_host_ = false;
  std::uint64_t marked_ = 0;
};

// A line of the kernel's log that may explain a death.
struct KernelEvent {
  enum class Kind : unsigned char {
    kOomKill,  // "Out of memory: Killed process 42 (python)", "Memory cgroup out of memory: ..."
    kXid,      // "NVRM: Xid (PCI:0000:3b:00): 79, pid=42, ...": an error of an NVIDIA GPU
  };
  Kind kind = Kind::kOomKill;
  // Of kOomKill: the pid in the initial pid namespace. In a container it is not the number that we know the process by.
  // 0 if the line names none.
  pid_t pid = 0;
  std::string text;  // the line, fit for a message
  // Microseconds since the host was started, by a clock that nobody sets: CLOCK_MONOTONIC_RAW, to a second or so.
  // 0 where only the message is known.
  std::int64_t time_us = 0;

  bool operator==(const KernelEvent&) const = default;
};

// Reads one message of the kernel, without the prefix that the log puts before it. Returns nothing for a message that
// explains no death.
std::optional<KernelEvent> parse_kernel_message(std::string_view message);

// Reads the kernel's log. No call waits for a record.
class KernelLog {
 public:
  enum class From : unsigned char {
    kNow,     // records that are written from now on
    kOldest,  // the oldest record that the kernel still has
  };
  // Fails where /dev/kmsg is missing (most containers) or not ours to read (dmesg_restrict).
  static Result<KernelLog> open(const std::string& root = "/", From from = From::kNow);
  // Reads records from a non-blocking descriptor: /dev/kmsg gives one record a read(), a file may give several.
  explicit KernelLog(UniqueFd records) : records_(std::move(records)) {}

  // Returns the events since the log was opened or read last. A call makes at most 10,000 reads and returns
  // at most 64 events; the next call returns the rest.
  std::vector<KernelEvent> read_new();
  // Whether the last call has read all records that there were.
  bool is_at_end() const { return is_at_end_; }

 private:
  void take_lines(std::string_view bytes);

  UniqueFd records_;
  std::string unread_;               // the beginning of a line whose end has not been read yet
  std::deque<KernelEvent> waiting_;  // events beyond those that one call may return
  bool is_at_end_ = false;
};

// A process that was killed by a signal that makes a core dump.
struct CrashedProcess {
  pid_t pid = 0;
  int signal = 0;
  std::string name;               // comm: at most 15 bytes
  std::string executable;         // path
  std::string working_directory;  // of the process
  std::string hostname;
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint64_t core_limit_bytes = 0;  // RLIMIT_CORE; all bits set: unlimited
};

// Where a process's core dump is.
struct CorePlace {
  enum class Kind : unsigned char {
    kFile,      // in the file `where`; "*" stands for what cannot be known (time, thread, ...)
    kReceiver,  // handed to the program or socket `where`
    kNone,      // nowhere; `where` says why
  };
  Kind kind = Kind::kNone;
  std::string where;

  // "core file /tmp/core.42", "core handed to /usr/bin/x", "no core file: the core size limit ..."
  std::string text(pid_t pid) const;
};

// Applies a pattern as core(5) describes it (/proc/sys/kernel/core_pattern, core_uses_pid).
CorePlace expand_core_pattern(std::string_view pattern, bool core_uses_pid, const CrashedProcess& process);
// The same with the pattern of this host. Looks at no core file.
CorePlace core_place(const CrashedProcess& process, const std::string& root = "/");

}  // namespace elastic::process
