#include "src/output/status_drawer.h"

#include <algorithm>
#include <utility>

#include "src/base/log.h"
#include "src/output/terminal.h"

namespace elastic::output {
namespace {

// The time between two updates during a wait: how soon the status line is drawn again after output, and, where there is
// none, how late a line in the log may be.
constexpr std::int64_t kLookMs = 250;
// After so much silence an incomplete line of a worker (a progress bar) is ended, so that the status line can be drawn.
constexpr std::int64_t kQuietMs = 1000;
// How long erasing the status line may take.
constexpr std::int64_t kHideMs = 100;

}  // namespace

StatusDrawer::StatusDrawer(net::Loop& loop, Settings settings, ConsoleWriter& out, ConsoleWriter& err)
    : loop_(loop), settings_(std::move(settings)), out_(out), err_(err), timer_(loop) {}

void StatusDrawer::wait_for(std::optional<Waiting> waiting) {
  waiting_ = std::move(waiting);
  if (settings_.line) settings_.line->wait_for(waiting_);
  if (!timer_runs_) draw_if_due();
}

void StatusDrawer::draw_if_due() {
  const std::uint64_t bytes = out_.added() + err_.added();
  if (std::exchange(seen_bytes_, bytes) != bytes) quiet_since_ms_ = loop_.now_ms();
  if (waiting_ && !hidden_ && log_.advice_due(*waiting_, loop_.now_ms())) log::answer("advice", waiting_->advice);
  if (can_draw()) {
    draw();
  } else {
    if (settings_.line) settings_.line->erase();  // the terminal is another job's: nothing is sent to it
    if (waiting_ && !hidden_ && log_.due(*waiting_, loop_.now_ms())) {
      const std::string text = waiting_text(*waiting_, loop_.now_ms());
      if (waiting_->unusual) {
        log::warning("waiting", text);
      } else {
        waiting_->for_others ? log::answer("waiting", text) : log::info("waiting", text);
      }
    }
  }
  if (waiting_ || (settings_.line && settings_.line->is_drawn())) look_later();
}

void StatusDrawer::look_later() {
  timer_runs_ = true;
  timer_.start(kLookMs, [this] {
    timer_runs_ = false;
    draw_if_due();
  });
}

bool StatusDrawer::can_draw() const { return settings_.line && !hidden_ && is_in_foreground(settings_.job); }

void StatusDrawer::draw() {
  if (!out_.is_idle() || !err_.is_idle()) return;
  if (out_.at_line_start() && err_.at_line_start()) {
    std::string bytes = settings_.line->draw(loop_.now_ms(), terminal_columns());
    if (!bytes.empty()) err_.write_status(std::move(bytes));
  } else if (waiting_ && loop_.now_ms() - std::max(quiet_since_ms_, waiting_->since_ms) >= kQuietMs) {
    (out_.at_line_start() ? err_ : out_).end_line();
  }
}

void StatusDrawer::hide() {
  hidden_ = true;
  if (!settings_.line) return;
  // Output that waits for the terminal erases the line first; otherwise the line is erased below.
  out_.wait_for_room(kHideMs);
  err_.wait_for_room(kHideMs);
  if (!is_in_foreground(settings_.job) || !out_.is_idle() || !err_.is_idle()) return;
  std::string bytes = settings_.line->erase();
  if (bytes.empty()) return;
  err_.write_status(std::move(bytes));
  err_.wait_for_room(kHideMs);
}

}  // namespace elastic::output
