#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/unique_fd.h"
#include "src/net/loop.h"
#include "src/output/console_writer.h"
#include "src/output/lines/line_assembler.h"
#include "src/output/lines/stream_plan.h"
#include "src/output/lines/tail.h"
#include "src/output/log_file.h"

namespace elastic::output {

// A worker's ends of its streams, for spawn(); -1: the worker inherits ours.
struct WorkerEnds {
  int out = -1;
  int err = -1;
};

// Where one worker's output goes.
struct WorkerOutput {
  RankStreams plan;
  std::string prefix;  // before each of its lines, where the plan says so
  // The opened log files: for kFile the worker writes them, for to_file the launcher. The paths are for messages.
  UniqueFd out_file;
  UniqueFd err_file;
  std::string out_path;
  std::string err_path;
};

// Reads the output of a round's workers and passes it on: whole lines to the consoles, bytes to log
// files, the end of stderr to the failure report. Where a console or a file is slow, workers have to
// wait as long as it makes progress: a console that takes nothing for 200 ms loses lines, a file that does not
// respond for 1 s is given up.
class Pump {
 public:
  struct Settings {
    LineFilter out_filter;
    LineFilter err_filter;
    std::uint64_t log_max_bytes = 0;  // of each log file; 0: no bound
    // Is given what workers write, as it is read, beside where that goes. May be empty.
    std::function<void(int local_rank, bool is_err, std::string_view bytes)> on_read = {};
  };

  // The console writers and the thread outlive the pump.
  Pump(net::Loop& loop, net::SideThread& files, Settings settings, ConsoleWriter& out, ConsoleWriter& err);
  ~Pump();
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  // The handlers for a log file that the pump is to wait for.
  LogFile::Handlers handlers_for(const std::string& path);

  // Sets the files that get this round's lines that match the filters; null for none.
  void use_filtered(std::shared_ptr<LogFile> out, std::shared_ptr<LogFile> err);

  // Forgets what was kept of the last round's stderr.
  void begin_round() { tails_.clear(); }
  // Makes one worker's streams and begins to read them. The worker's ends are open until started().
  Result<WorkerEnds> open(int local_rank, WorkerOutput output);
  // The worker has been started with its ends; ours are closed.
  void started(int local_rank);

  // Reads what the worker has written so far, as much as its console takes: everything, once the worker has ended and
  // its console is not slow. Does not wait for other processes that have the stream open.
  void drain(int local_rank);
  // All workers of the round have gone: reads what is left, ends lines, closes files. A slow console gets the rest
  // later; nothing waits for it.
  void end_round();

  // What is kept of a worker's stderr, until the next round begins.
  TailText tail(int local_rank) const;

  // Resumes reading streams that were held back because of a slow console or file.
  void room();

  // Passes on that the size of our terminal has changed.
  void resize();

 private:
  struct Stream;

  Result<std::unique_ptr<Stream>> make_stream(const StreamPlan& plan, UniqueFd& worker_end);
  void readable(Stream& stream);
  // Reads once. False if there is nothing to read now, or the stream has ended.
  bool read_once(Stream& stream);
  void write_lines(Stream& stream, std::string_view bytes);
  void copy_matching(const Stream& stream);
  void flush(Stream& stream);
  ConsoleWriter& console_of(const Stream& stream) const;
  bool is_console_behind(const Stream& stream) const;
  bool is_held_back(const Stream& stream) const;
  void hold(Stream& stream);
  void look_at_held();
  void watch_rests(std::int64_t delay_ms);

  net::Loop& loop_;
  net::SideThread& files_;
  Settings settings_;
  ConsoleWriter& out_console_;
  ConsoleWriter& err_console_;
  std::shared_ptr<LogFile> out_filtered_;
  std::shared_ptr<LogFile> err_filtered_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::map<int, std::vector<UniqueFd>> worker_ends_;                           // until started()
  std::map<int, std::vector<std::pair<std::string, UniqueFd>>> worker_files_;  // the same, log files
  std::map<int, Tail> tails_;
  std::string lines_;  // lines of an assembler; a member to reuse its memory
  bool hold_timer_runs_ = false;
  net::Timer hold_timer_;
  net::Timer rest_timer_;
  bool rest_timer_runs_ = false;
};

}  // namespace elastic::output
