#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "src/net/loop.h"
#include "src/net/side_thread.h"
#include "src/output/lines/console_buffer.h"

namespace elastic::output {

// One console, stdout or stderr of ours, that workers' lines go to. A thread of its own writes to it, for
// as long as its reader takes; nobody else waits.
class ConsoleWriter {
 public:
  // `name` is for messages. `on_room` is called when what waits has shrunk.
  ConsoleWriter(net::Loop& loop, int descriptor, std::string name, ConsoleBuffer::Notice notice,
                std::function<void()> on_room);
  ConsoleWriter(const ConsoleWriter&) = delete;
  ConsoleWriter& operator=(const ConsoleWriter&) = delete;

  // Adds whole lines of one source; see ConsoleBuffer. Once the console has been closed they are only counted.
  void add(int source, std::string_view lines);
  // Adds bytes of a terminal as they are.
  void add_raw(int source, std::string_view bytes);

  // True while much waits and the console takes it: who can should hold back, before lines are dropped. A
  // console that has not taken 256 KiB for 200 ms is waited for no longer until it has caught up.
  bool is_behind();

  // Waits until all is written, for as long as the console goes on taking; what it has not taken then is
  // counted as dropped. The loop need not run.
  void flush();

  const Dropped& dropped() const { return buffer_.dropped(); }
  // What waits for it, as a clause: "the console is slow", "the console was closed".
  const char* why_dropped() const { return closed_ ? "the console was closed" : "the console is slow"; }

 private:
  static constexpr std::size_t kBehindBytes = limits::kConsoleWaitingBytes / 2;
  static constexpr std::size_t kBatchBytes = 256 * 1024;
  static constexpr std::int64_t kPatienceMs = 200;
  static constexpr std::int64_t kFlushPatienceMs = 1000;
  // What the thread is writing; it may outlive us.
  struct Batch {
    std::string bytes;
    std::atomic<std::size_t> written = 0;
    int error = 0;
  };

  void write_next();
  void written();
  void give_up();

  int descriptor_;
  std::string name_;
  std::function<void()> on_room_;
  ConsoleBuffer buffer_;
  bool writing_ = false;
  bool closed_ = false;
  bool impatient_ = false;  // it has taken nothing for a while, and has not caught up since
  std::shared_ptr<Batch> batch_ = std::make_shared<Batch>();
  net::SideThread thread_;
  net::ReadWatch done_watch_;
};

}  // namespace elastic::output
