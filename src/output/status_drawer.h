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

// Tells the user what elastic-run waits for: on a terminal by a status line that is drawn while the wait lasts,
// elsewhere by a line in the log from time to time.
class StatusDrawer {
 public:
  struct Settings {
    // The status line of the terminal that is our stderr; null where there is none, or nothing is to be drawn there.
    std::shared_ptr<StatusLine> line;
    pid_t job = 0;  // a process of the shell's job; nothing is drawn while that is in the background
  };

  // Both consoles outlive the drawer; `err` is stderr.
  StatusDrawer(net::Loop& loop, Settings settings, ConsoleWriter& out, ConsoleWriter& err);

  // Sets what elastic-run waits for from now on; nothing: it does not wait.
  void wait_for(std::optional<Waiting> waiting);

  // Erases the status line and draws none until show(), because this process is about to be stopped, or to end. Waits
  // for the terminal for a moment.
  void hide();
  void show() { hidden_ = false; }

 private:
  void draw_if_due();
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
  std::uint64_t seen_bytes_ = 0;     // added to both consoles so far
  std::int64_t quiet_since_ms_ = 0;  // since when none were added
  bool timer_runs_ = false;
  net::Timer timer_;
};

}  // namespace elastic::output
