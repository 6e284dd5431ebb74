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

// The probes of a node's GPUs, one process for each GPU, which run through all phases of a check. docs/gpu-probe.md
// describes their requests and replies.
namespace elastic::health {

// The program of a probe: in memory or, where that cannot be executed, in a file that is removed at the end.
class ProbeImage {
 public:
  // Makes `image` executable for as long as this object lives. `directory`: where a file may be created.
  static Result<ProbeImage> make(std::span<const std::byte> image, const std::string& directory);
  // A program that exists as a file.
  static ProbeImage at(std::string path);
  ProbeImage(ProbeImage&&) = default;
  ProbeImage& operator=(ProbeImage&&) = delete;
  ~ProbeImage();

  const std::string& path() const { return path_; }

 private:
  ProbeImage(std::string path, UniqueFd memory, std::string file)
      : path_(std::move(path)), memory_(std::move(memory)), file_(std::move(file)) {}

  std::string path_;
  UniqueFd memory_;   // none: the program is a file
  std::string file_;  // the file to remove; empty: none
};

// Ends the wait for answers before all have come.
class EarlyEnd {
 public:
  virtual ~EarlyEnd() = default;
  // A descriptor that is watched, too; negative: none.
  virtual int descriptor() const { return -1; }
  // Called when the descriptor is readable. Returns whether the wait is over.
  virtual bool is_over_by_descriptor() { return false; }
  // Called when an answer has come, or cannot come any more. Returns whether the wait is over.
  virtual bool is_over_by_answer(std::size_t probe, const Attempt<std::string>& answer) = 0;
};

class GpuProbes {
 public:
  // Starts `count` probes with this environment. Fails where the program cannot be executed.
  static Attempt<GpuProbes> start(int count, const ProbeImage& image, std::span<const std::string> environment);
  GpuProbes(GpuProbes&&) = default;
  GpuProbes& operator=(GpuProbes&&) = delete;
  // Kills the probes that are left and reaps them.
  ~GpuProbes();

  int size() const { return static_cast<int>(probes_.size()); }
  // Sends each probe its line (an empty line: that probe is not asked) and returns the answers by index, a line each,
  // or why there is none: "its probe was killed by SIGSEGV". A probe that has not answered by the deadline, or when
  // `early_end` ends the wait, is killed. `early_end` is told each answer once; null: only the deadline ends the wait.
  std::vector<Attempt<std::string>> ask(const std::vector<std::string>& lines, const Deadline& deadline,
                                        EarlyEnd* early_end = nullptr);
  // Starts the probes again that have ended, and returns their indices. `image` and `environment`: those of start().
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
