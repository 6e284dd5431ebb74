#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "health/stack_reader/reader_process.h"
#include "health/stacks/look.h"
#include "src/base/result.h"
#include "src/base/unique_fd.h"
#include "src/net/loop.h"
#include "src/process/descendants.h"
#include "src/process/spawn.h"

namespace elastic::run {

// A process whose stacks are wanted, with those that it has started.
struct StacksTarget {
  int rank = -1;  // -1: it is no worker
  pid_t pid = 0;
  std::vector<pid_t> children = {};  // and their children
};

// The descendants of a process among these.
std::vector<pid_t> children_of(pid_t pid, const std::vector<process::ProcessFacts>& all);

// Collects the stacks of processes of this host, by a reader process (health/stack_reader) that it asks about one after
// the other. It opens their memory itself, since Yama may allow that to their ancestor alone. A process that cannot be
// read in time costs its own stack only: the reader is killed, and another one goes on with the next process.
class StacksCollector {
 public:
  struct Handlers {
    std::function<Result<pid_t>(const process::Command&)> start;
    std::function<void(pid_t)> kill;  // with SIGKILL; its starter reaps it
  };
  using OnDone = std::function<void(std::vector<stacks::RankLook>)>;

  StacksCollector(net::Loop& loop, Handlers handlers);
  ~StacksCollector() { end_reader(); }
  StacksCollector(const StacksCollector&) = delete;
  StacksCollector& operator=(const StacksCollector&) = delete;

  // Begins; one collection at a time. `on_done` is called once, in a later turn of the loop, with what was seen of each
  // target, in this order.
  void collect(std::vector<StacksTarget> targets, OnDone on_done);
  bool is_collecting() const { return static_cast<bool>(on_done_); }

 private:
  // A process that is to be looked at: a target, or a child of it.
  struct Place {
    std::size_t target = 0;
    pid_t pid = 0;
    bool is_child = false;
  };
  void next();
  void end();
  Status start_reader();
  void end_reader();
  void read();
  void answered(std::string_view line);
  void failed(const std::string& why, bool is_late = false);
  void keep(stacks::ProcessLook look);
  // Of these milliseconds those that are left of the whole collection.
  std::int64_t left_ms(std::int64_t most) const;

  net::Loop& loop_;
  Handlers handlers_;
  OnDone on_done_;
  std::vector<stacks::RankLook> looks_;
  std::vector<Place> places_;
  std::size_t at_ = 0;                        // the place that is asked about
  std::optional<stacks::ProcessLook> first_;  // what the kernel says of it
  std::int64_t ends_ms_ = 0;
  UniqueFd channel_;
  pid_t reader_ = 0;
  std::optional<net::ReadWatch> watch_;
  std::string line_;
  net::Timer deadline_;
};

}  // namespace elastic::run
