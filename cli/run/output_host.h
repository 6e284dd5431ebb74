#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/output_settings.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/waiting.h"
#include "src/net/loop.h"
#include "src/net/side_thread.h"
#include "src/output/console_writer.h"
#include "src/output/lines/stream_plan.h"
#include "src/output/log_files.h"
#include "src/output/pump.h"
#include "src/output/status_drawer.h"

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

// The end of what one worker has written to stderr.
struct WorkerStderr {
  output::TailText kept;
  std::string file;          // its log file, where the launcher has not seen the stream
  std::string none_because;  // why neither is there
};

// Carries what the workers of this node write to our consoles and to log files, and keeps the end of their stderr for
// the failure report.
class OutputHost {
 public:
  struct Handlers {
    std::function<void(protocol::RoundNumber)> on_opened;
    std::function<void(protocol::RoundNumber, std::string reason)> on_failed;
    std::function<void(int local_rank, bool is_err, std::string_view bytes)> on_read;  // Pump::Settings
  };

  // Settings and `files` outlive it. `directory` may be null: then nothing is kept.
  OutputHost(net::Loop& loop, const OutputSettings& settings, net::SideThread& files,
             std::shared_ptr<output::RunDirectory> directory, Handlers handlers);
  ~OutputHost();

  // Makes the directories and files of a round.
  void open_round(protocol::RoundNumber round, int restart_count);
  void prepare_round() { logs_.prepare(static_cast<int>(settings_.ranks.size())); }
  void give_up_logs() { logs_.give_up(); }

  // The workers of a new round are about to be started: forgets what was kept of the last round's.
  void begin_round();
  // Opens one worker's streams; the ends are open until started().
  Result<output::WorkerEnds> open_worker(int local_rank, int rank);
  void started(int local_rank) { pump_.started(local_rank); }
  // The file to which the worker's @record is to write; empty if nothing is kept.
  std::string error_file(int local_rank) const { return logs_.rank_file(local_rank, "error.json"); }
  // The worker has ended: reads what it wrote.
  void ended(int local_rank) { pump_.drain(local_rank); }
  void end_round() { pump_.end_round(); }

  // Whether there is a log directory that answers.
  bool keeps_logs() const { return logs_.is_kept(); }
  const output::Attempt& attempt() const { return logs_.attempt(); }
  // The end of the stderr of the last round's workers, by local rank.
  std::vector<WorkerStderr> stderrs() const;

  void resize() { pump_.resize(); }
  // Tells the user what elastic-run waits for; see StatusDrawer.
  void wait_for(std::optional<Waiting> waiting) { status_.wait_for(std::move(waiting)); }
  void hide_status() { status_.hide(); }
  void show_status() { status_.show(); }
  // Waits until all output has been written to the consoles, as long as they go on taking it, and reports what was
  // dropped.
  void flush();

 private:
  void opened(protocol::RoundNumber round, output::RoundFiles files);
  output::OutputFlags flags_of(int local_rank) const;
  bool all_passes_through_us() const;

  const OutputSettings& settings_;
  net::SideThread& files_;
  Handlers handlers_;
  output::OurStreams ours_;
  std::string hostname_;
  LogHost logs_;
  output::RoundFiles round_files_;
  std::shared_ptr<output::StatusLine> status_line_;  // null where no status line is drawn
  std::shared_ptr<output::ConsoleThread> err_thread_;
  output::ConsoleWriter out_;
  output::ConsoleWriter err_;
  output::Pump pump_;
  output::StatusDrawer status_;
  struct TailPlace {
    output::TailSource source = output::TailSource::kNone;
    std::string file = {};  // the log file of stderr
  };
  std::vector<TailPlace> tails_;  // by local rank, of the last round
};

}  // namespace elastic::run
