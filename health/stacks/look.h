#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "health/stacks/bounds.h"
#include "health/stacks/python_stacks.h"
#include "src/base/fields.h"

// What was seen of processes, by one look at each.
namespace elastic::stacks {

// A thread as kernel and interpreter have it.
struct ThreadLook {
  std::int64_t id = 0;
  std::string wait = {};  // what it does, as the kernel has it: "sleeping in futex_do_wait (futex)"
  std::vector<Frame> frames = {};
  bool is_cut = false;
  bool is_torn = false;  // the process ran on while it was read

  static void fields(auto& io, auto& v) {
    each(io, "id", v.id, "wait", v.wait);
    io("frames", v.frames, at_most(kMostFrames));
    each(io, "cut", v.is_cut, "torn", v.is_torn);
  }
};

// A process. Its first thread is the main one, even if Python knows nothing of it.
struct ProcessLook {
  std::int64_t pid = 0;
  std::string name = {};            // as the kernel has it
  std::string python = {};          // the version; empty: no stack of Python could be read, and `problem` says why
  std::string problem = {};         // a clause
  bool is_late = false;             // it was not read in time. Whoever has asked the reader knows it
  std::int64_t native_threads = 0;  // that are not in `threads`
  std::vector<ThreadLook> threads = {};
  bool is_cut = false;  // Python has more threads

  static void fields(auto& io, auto& v) {
    each(io, "pid", v.pid, "name", v.name, "python", v.python, "problem", v.problem, "native_threads",
         v.native_threads);
    io("threads", v.threads, at_most(kMostThreads + 1));
    io("cut", v.is_cut);
  }
};

// A worker, or the one process that was asked for.
struct RankLook {
  int rank = -1;  // -1: it is no worker
  ProcessLook process = {};
  std::vector<ProcessLook> children = {};  // and their children
  int more_children = 0;                   // that were not looked at
};

}  // namespace elastic::stacks
