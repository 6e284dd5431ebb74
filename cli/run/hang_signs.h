#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "health/evidence/process_state.h"

namespace elastic::run {

// What a node's processes show of a hang without being asked (docs/hangs.md): a worker that waits for a disk or is
// stopped, and bytes that move. It is fed by one look after the other.
class HangSigns {
 public:
  // A process as it was at one look: a worker, or one that a worker has started.
  struct Seen {
    std::int64_t pid = 0;
    std::optional<int> local_rank = {};  // of a worker
    evidence::ProcessSample is = {};
  };
  struct Signs {
    bool waits_for_disk = false;
    bool is_stopped = false;
    bool disks_move = false;
  };

  // New workers: nothing is known of them.
  void begin_round() { *this = {}; }
  // `now_ms`: of one clock.
  Signs signs_in(std::span<const Seen> processes, std::int64_t now_ms);
  // Since when the worker has been in the state of the last look, as far as that was seen; not set: not known.
  std::optional<std::int64_t> since_ms(int local_rank) const;

 private:
  struct Known {
    evidence::ProcessSample is = {};
    std::int64_t since_ms = 0;  // in this state
    bool is_seen = false;       // in the present look
  };
  std::map<std::int64_t, Known> known_;
  std::map<int, std::int64_t> pids_;  // by local rank
  std::optional<std::int64_t> looked_ms_ = {};
};

}  // namespace elastic::run
