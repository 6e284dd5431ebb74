#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "rendezvous/protocol/messages.h"
#include "src/net/loop.h"
#include "src/net/side_thread.h"
#include "src/output/log_files.h"

namespace elastic::run {

// The log directory of a run. A side thread does all work on it, for it may be on a file system that hangs.
class LogHost {
 public:
  struct Handlers {
    std::function<void(protocol::RoundNumber, output::RoundFiles)> on_opened;
    std::function<void(protocol::RoundNumber, std::string reason)> on_failed;
  };

  // `directory` may be null: then nothing is kept. The thread outlives the LogHost.
  LogHost(net::Loop& loop, net::SideThread& thread, std::shared_ptr<output::RunDirectory> directory, Handlers handlers);

  // Makes the directories and files of a round's workers. A failure is passed to on_failed only for the first round,
  // and if the user has named the directory; otherwise the job runs without logs.
  void open(protocol::RoundNumber round, int restart_count, output::WantedFiles wanted);
  // Makes directories in advance, for a round that may follow.
  void prepare(int workers);
  // From now on no logs are kept, because the directory does not respond.
  void give_up();

  // The attempt that was opened last.
  const output::Attempt& attempt() const { return attempt_; }
  bool is_kept() const { return directory_ != nullptr; }
  // Files of the round that was opened last; empty if nothing is kept.
  std::string rank_file(int local_rank, std::string_view name) const;
  std::string filtered_file(std::string_view stream) const;

 private:
  net::SideThread& thread_;
  std::shared_ptr<output::RunDirectory> directory_;
  Handlers handlers_;
  output::Attempt attempt_{.restart_count = -1};
  net::ReadWatch done_watch_;
};

}  // namespace elastic::run
