#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "health/probe/attempt.h"
#include "src/base/result.h"
#include "src/base/unique_fd.h"
#include "src/process/spawn.h"

// The probes of a node's GPUs, one process each, which live through all phases of a check. docs/gpu-probe.md has what
// is said.
namespace elastic::health {

// The program that a probe executes, in memory or, where that is forbidden, in a file that is removed again.
class ProbeImage {
 public:
  // `image` becomes executable for as long as this lives. `directory`: where a file may be made.
  static Result<ProbeImage> make(std::span<const std::byte> image, const std::string& directory);
  // A program that is there.
  static ProbeImage at(std::string path);
  ProbeImage(ProbeImage&&) = default;
  ProbeImage& operator=(ProbeImage&&) = delete;
  ~ProbeImage();

  const std::string& path() const { return path_; }

 private:
  ProbeImage(std::string path, UniqueFd memory, std::string file)
      : path_(std::move(path)), memory_(std::move(memory)), file_(std::move(file)) {}

  std::string path_;
  UniqueFd memory_;   // none: a file
  std::string file_;  // to be removed; empty: none
};

// What may end the wait for answers before all have come.
class Patience {
 public:
  virtual ~Patience() = default;
  // Something else that is watched; negative: nothing.
  virtual int descriptor() const { return -1; }
  // It can be read from. Whether nobody is waited for any more.
  virtual bool is_over_by_descriptor() { return false; }
  // An answer has come, or will not come. The same.
  virtual bool is_over_by_answer(std::size_t probe, const Attempt<std::string>& answer) = 0;
};

class GpuProbes {
 public:
  // Starts `count` probes with this environment. Fails where the program cannot be executed at all.
  static Attempt<GpuProbes> start(int count, const ProbeImage& image, std::span<const std::string> environment);
  GpuProbes(GpuProbes&&) = default;
  GpuProbes& operator=(GpuProbes&&) = delete;
  // Ends those that are left, by SIGKILL, and reaps them.
  ~GpuProbes();

  int size() const { return static_cast<int>(probes_.size()); }
  // Writes each probe its line (empty: none is asked) and gathers their answers, a line each, by index. Who has not
  // answered by the deadline, or when patience is over, is killed; the reason of a failure is a clause: "its probe was
  // killed by SIGSEGV". `patience` hears of each answer once; null: there is the deadline alone.
  std::vector<Attempt<std::string>> ask(const std::vector<std::string>& lines, const Deadline& deadline,
                                        Patience* patience = nullptr);
  // Starts those again that have ended, as they were started at first: which these are. `image` is that of start().
  Attempt<std::vector<std::size_t>> restart(const ProbeImage& image, std::span<const std::string> environment);

 private:
  struct Probe {
    pid_t pid = 0;  // 0: reaped
    UniqueFd channel;
    std::string unread = {};
    std::string why_gone = {};
  };
  class Asking;

  GpuProbes() = default;
  static Attempt<Probe> start_one(const ProbeImage& image, std::span<const std::string> environment);
  void end(Probe& probe, std::string why);

  std::vector<Probe> probes_;
};

}  // namespace elastic::health
