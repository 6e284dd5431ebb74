#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.h"
#include "src/net/loop.h"
#include "src/net/side_thread.h"

namespace elastic::run {

// Tells when a worker has written a whole error file, by inotify on its directory. Where the kernel gives no watch, or
// the file system does not answer, it tells nothing.
class ErrorFileWatch {
 public:
  using OnWritten = std::function<void(protocol::RoundNumber, int local_rank)>;
  // `files`: the thread for all access to the log directory, which outlives this. `on_written` is called from the loop,
  // once for each worker at most.
  ErrorFileWatch(net::Loop& loop, net::SideThread& files, OnWritten on_written);
  ~ErrorFileWatch();

  // A round begins, whose workers are to write these files, by local rank. What stands there already is not looked at.
  void begin_round(protocol::RoundNumber round, std::vector<std::string> paths);
  void end_round();

 private:
  struct Round;
  void look_for_files(const std::shared_ptr<Round>& round);
  void read(const std::shared_ptr<Round>& round, std::size_t local_rank);

  net::Loop& loop_;
  net::SideThread& files_;
  OnWritten on_written_;
  std::shared_ptr<Round> round_;  // null between rounds
};

}  // namespace elastic::run
