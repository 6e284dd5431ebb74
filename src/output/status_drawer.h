#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "src/base/waiting.h"
#include "src/net/loop.h"
#include "src/output/console_writer.h"
#include "src/output/lines/status_line.h"

namespace elastic::output {

// Tells the user what is waited for: on the terminal that is our stderr by one line that lives while it lasts,
// elsewhere by a line in the log now and then.
class StatusDrawer {
 public:
  struct Settings {
    // The line of that terminal; null where there is none, or nothing is to be drawn there.
    std::shared_ptr<StatusLine> line;
    pid_t job = 0;  // a process of the group that the shell knows: in the background nothing is drawn
  };

  // Both consoles outlive it; `err` is stderr.
  StatusDrawer(net::Loop& loop, Settings settings, ConsoleWriter& out, ConsoleWriter& err);

  // What is waited for from now on; nothing: the user need not wait.
  void wait_for(std::optional<Waiting> waiting);

  // Takes the line away, and draws it no more until show(): we are about to be stopped, or to end. Waits for the
  // terminal for a moment.
  void hide();
  void show() { hidden_ = false; }

 private:
  void look();
  void look_later();
  void draw();
  bool can_draw() const;

  net::Loop& loop_;
  Settings settings_;
  ConsoleWriter& out_;
  ConsoleWriter& err_;
  std::optional<Waiting> waiting_;
  WaitLog log_;
  bool hidden_ = false;
  std::uint64_t seen_bytes_ = 0;     // of both consoles
  std::int64_t quiet_since_ms_ = 0;  // since when no more have come
  bool timer_runs_ = false;
  net::Timer timer_;
};

}  // namespace elastic::output
