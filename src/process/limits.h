#pragma once

// Bounds of processes. docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | open descriptors | the hard limit of `ulimit -n`, to which elastic-run raises its own (workers get the soft one
// back). It needs {kLauncherDescriptors} for the launcher (connections to the store not counted), 2 for its thread of
// files (5 more with file timers) and, for each worker, one for the store, one for its `ELASTIC_RUN_PROGRESS`, one for
// each log file and one for each stream that the launcher reads (4 with `-t 3`) | fewer are refused at the start, exit
// status 1; a connection to the store for which none is left is closed, with one warning |
inline constexpr int kLauncherDescriptors = 24;

}  // namespace elastic::limits
