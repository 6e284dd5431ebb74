// The file in which workers of many nodes note when they came: crowd.c, crowd_worker.c and crowd.py share it.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct crowd {
  uint32_t launchers;
  uint32_t capacity;         // entries
  _Atomic uint32_t arrived;  // workers of all rounds so far; those beyond the capacity have no entry
  uint32_t unused;
  int64_t began_ns;    // CLOCK_MONOTONIC, as all times: before the first launcher's start
  int64_t started_ns;  // after the last one's
  int64_t ended_ns;    // all were reaped
};

struct crowd_entry {
  int64_t came_ns;     // written last
  int64_t stopped_ns;  // SIGTERM came
  int32_t pid;
  uint32_t rank;
  uint32_t world;
  uint32_t round;  // another number for each
  uint32_t restart;
  int32_t conflict;  // the process that had this rank, or was of another round, when this one began
};

static inline int32_t* crowd_pids(struct crowd* marks) { return (int32_t*)(marks + 1); }

static inline struct crowd_entry* crowd_entries(struct crowd* marks) {
  return (struct crowd_entry*)(crowd_pids(marks) + (marks->launchers + 1) / 2 * 2);
}
