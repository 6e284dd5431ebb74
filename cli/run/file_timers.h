#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/fifo.h"
#include "cli/run/launch_settings.h"
#include "cli/run/stacks_collector.h"
#include "health/timers/timer_table.h"
#include "src/base/environment.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/process/descendants.h"
#include "src/report/failure.h"

namespace elastic::run {

// Serves torchelastic's file timers to the workers of this node, as torchrun's agent does: a worker, or a process that
// it has started, that does not release a timer in time gets the signal that the timer names. Before that its Python's
// stack is read. Unlike torchrun's agent this one does not end itself by the same signal: the worker's end is a failure
// like any other.
class FileTimers {
 public:
  struct Handlers {
    StacksCollector::Handlers stacks;
    // A process of this worker was signalled.
    std::function<void(pid_t worker, report::ExpiredTimer)> on_signalled;
  };
  // Makes the FIFO, if timers are served. `directory`: of this launch, or empty.
  FileTimers(net::Loop& loop, const FileTimerSettings& settings, const std::string& directory, Handlers handlers);
  // Removes the FIFO that was made at the user's path.
  ~FileTimers();
  FileTimers(const FileTimers&) = delete;
  FileTimers& operator=(const FileTimers&) = delete;

  // The variable by which a worker finds the FIFO; empty where none is served.
  std::vector<Variable> variables() const;
  // The workers of a new round are about to be started.
  void begin_round(int base_rank);
  void started(int local_rank, pid_t pid);
  // The workers are being stopped, or have ended: no timer counts any more.
  void end_round();

 private:
  // A process that has set a timer, and the worker that it is or comes from.
  struct Client {
    int local_rank = 0;
    pid_t worker = 0;
    process::ProcessFacts facts = {};
  };
  struct Overdue {
    Client client = {};
    timers::Expired expired = {};
    report::HangStack stack = {};
    std::string problem = {};
  };
  Status open(const std::string& directory);
  void read_requests(std::string_view bytes);
  void take_request(const timers::TimerRequest& request);
  std::optional<Client> client_of(pid_t pid) const;
  void plan_look();
  void find_expired();
  void read_next();
  void has_read(const std::vector<stacks::RankLook>& looks);
  void signal_all();
  void signal(const Overdue& overdue);

  net::Loop& loop_;
  const FileTimerSettings& settings_;
  Handlers handlers_;
  std::string path_;
  Fifo fifo_;
  timers::TimerLines lines_;
  timers::TimerTable table_;
  int base_rank_ = 0;
  bool is_running_ = false;
  bool warned_of_room_ = false;
  bool told_of_stranger_ = false;
  std::map<pid_t, Client> workers_;         // of this round
  std::map<std::int64_t, Client> clients_;  // that have timers
  net::Timer timer_;                        // until the next one expires
  std::vector<Overdue> overdue_;            // whose stacks are being read; empty: none are
  std::size_t at_ = 0;                      // which of them is being read
  std::optional<StacksCollector> collector_;
  net::Timer deadline_;
};

}  // namespace elastic::run
