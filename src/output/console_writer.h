#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "src/net/loop.h"
#include "src/net/side_thread.h"
#include "src/output/limits.h"
#include "src/output/lines/console_buffer.h"
#include "src/output/lines/status_line.h"

namespace elastic::output {

// The thread that writes to a console; the loop is told when a write is done.
class ConsoleThread {
 public:
  explicit ConsoleThread(net::Loop& loop)
      : done_watch_(loop, thread_.done_descriptor(), [this] { thread_.run_done(); }) {}
  net::SideThread& thread() { return thread_; }

 private:
  net::SideThread thread_;
  net::ReadWatch done_watch_;
};

// One console, our stdout or stderr, to which workers' lines go. A thread writes to it, however long its
// reader takes; nothing else waits for that.
class ConsoleWriter {
 public:
  struct Settings {
    int descriptor = -1;
    std::string name;  // for messages
    ConsoleBuffer::Notice notice = ConsoleBuffer::Notice::kNone;
    // The consoles share one thread where they are one terminal, so that lines of both stay in order.
    std::shared_ptr<ConsoleThread> thread;
    // The status line of that terminal, erased before anything else is written; null where there is none.
    std::shared_ptr<StatusLine> status;
    std::function<void()> on_room;   // called when fewer bytes wait than before
    std::int64_t patience_ms = 200;  // see is_behind()
  };
  explicit ConsoleWriter(Settings settings);
  ConsoleWriter(const ConsoleWriter&) = delete;
  ConsoleWriter& operator=(const ConsoleWriter&) = delete;

  // Adds whole lines of one source; see ConsoleBuffer. Once the console has been closed they are only counted.
  void add(int source, std::string_view lines);
  // Adds bytes of a pseudo-terminal unchanged.
  void add_raw(int source, std::string_view bytes);

  // Adds a line end if the last line has none.
  void end_line();
  // Nothing waits and nothing is being written.
  bool is_idle() const { return !writing_ && buffer_.empty(); }
  bool at_line_start() const { return buffer_.at_line_start(); }
  // How many bytes have been added so far.
  std::uint64_t added() const { return added_; }
  // Sends bytes that draw or erase the status line. Allowed only while this writer, and the other one of the same
  // terminal, are idle.
  void write_status(std::string bytes);

  // True while many bytes wait and the console goes on taking them: then the caller should read less from workers,
  // before lines have to be dropped. False for a console that has not taken 256 KiB in `patience_ms`, until it has
  // caught up.
  bool is_behind();

  // Between these two calls the buffer accepts all that is left in the pipes of workers that have ended, unless the
  // console has taken nothing for a while. See ConsoleBuffer.
  void expect_rest();
  void rest_has_come() { buffer_.rest_has_come(); }

  // Waits until a part of the waiting bytes has been written, at most so many milliseconds. The loop need not run.
  void wait_for_room(std::int64_t milliseconds);

  // Waits until all is written, as long as the console goes on taking bytes; those that it has not taken then
  // are counted as dropped. The loop need not run.
  void flush();

  const Dropped& dropped() const { return buffer_.dropped(); }
  // Why output was dropped, as a clause: "the console is slow", "the console was closed".
  const char* why_dropped() const { return closed_ ? "the console was closed" : "the console is slow"; }

 private:
  static constexpr std::size_t kBehindBytes = limits::kConsoleWaitingBytes / 2;
  static constexpr std::size_t kBatchBytes = 256 * 1024;
  static constexpr std::int64_t kFlushPatienceMs = 1000;
  // What the thread is writing; the thread may outlive the ConsoleWriter.
  struct Batch {
    std::string lead;  // written first: it erases the status line
    std::string bytes;
    std::atomic<std::size_t> written = 0;
    int error = 0;
  };

  void write_next();
  void post();
  void written();
  void give_up();

  Settings settings_;
  ConsoleBuffer buffer_;
  std::uint64_t added_ = 0;
  bool writing_ = false;
  bool closed_ = false;
  bool impatient_ = false;  // the console has taken nothing for a while, and has not caught up since
  std::shared_ptr<Batch> batch_ = std::make_shared<Batch>();
  net::SideThread& thread_;
};

}  // namespace elastic::output
