#pragma once

#include "src/report/hang.h"

// A hang with a value in every member, for tests.
namespace elastic::report::testing {

inline Hang full_hang() {
  return {
      .round = 2,
      .wall_ms = 1'795'279'603'500,
      .silent_s = 250,
      .limit_s = 60,
      .limit_from = "learned",
      .phase = "train",
      .longest_gap_s = 12,
      .verdict = {7, "behind"},
      .fault = "soft",
      .cause = "rank 5 (node gpu-2) is not in the collective that others wait in",
      .others = "7 ranks in all_reduce number 1904 of group \"tp_0\"; rank 5 has launched 1903",
      .remedy = "look at its data loader",
      .culprits = {{.rank = 5, .node = "gpu-2", .pid = 4711, .why = "rank 5 is one collective behind"}},
      .groups = {{.ranks = "5",
                  .count = 1,
                  .is_odd = true,
                  .state = "sleep",
                  .wchan = "hrtimer_nanosleep",
                  .stack = HangStack{{"load_batch", "/home/u/data.py", 88}, {"train_step", "/home/u/train.py", 141}},
                  .child_stack = HangStack{{"fetch", "/home/u/data.py", 12}}},
                 {.ranks = "0-4,6-7",
                  .count = 7,
                  .state = "sleep",
                  .wchan = "futex_wait_queue",
                  .op = "all_reduce",
                  .seq = 1904,
                  .stack = HangStack{{"all_reduce", "/venv/torch/distributed/distributed_c10d.py", 2501},
                                     {"train_step", "/home/u/train.py", 150}}}},
      .sources = {.stacks = "ok", .ras = "refused", .fr = "ok", .nvml = "off", .links = "ok", .store = "late"},
      .last_line = "iteration 118/500",
      .last_rank = 7,
      .evidence = "/logs/none_x/attempt_0/hang",
      .action = "nothing: --hang=report",
  };
}

}  // namespace elastic::report::testing
