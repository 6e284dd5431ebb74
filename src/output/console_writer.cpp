#include "src/output/console_writer.h"

#include <utility>

#include "src/base/log.h"
#include "src/base/patience.h"
#include "src/output/limits.h"
#include "src/output/write_all.h"

namespace elastic::output {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;

}  // namespace

ConsoleWriter::ConsoleWriter(Settings settings)
    : settings_(std::move(settings)),
      buffer_(settings_.notice, limits::kConsoleWaitingBytes,
              [](std::string_view text) { return log::line(log::Level::kWarning, "dropped", text); }),
      thread_(settings_.thread->thread()) {}

void ConsoleWriter::add(int source, std::string_view lines) {
  added_ += lines.size();
  buffer_.add(source, lines);
  write_next();
}

void ConsoleWriter::add_raw(int source, std::string_view bytes) {
  added_ += bytes.size();
  buffer_.add_raw(source, bytes);
  write_next();
}

void ConsoleWriter::end_line() {
  buffer_.end_line();
  write_next();
}

void ConsoleWriter::write_status(std::string bytes) {
  batch_->lead = std::move(bytes);
  batch_->bytes.clear();
  post();
}

bool ConsoleWriter::is_behind() {
  const bool much_waits = buffer_.size() > kBehindBytes;
  impatient_ = much_waits && (impatient_ || thread_.stuck_for(settings_.patience_ms));
  return much_waits && !impatient_;
}

void ConsoleWriter::expect_rest() {
  is_behind();  // this may find that the patience is over
  if (!impatient_) buffer_.expect_rest(limits::kConsoleRestBytes);
}

void ConsoleWriter::write_next() {
  if (writing_ || !buffer_.take_bytes(batch_->bytes, kBatchBytes)) return;
  batch_->lead = settings_.status ? settings_.status->erase() : "";
  post();
}

void ConsoleWriter::post() {
  writing_ = true;
  batch_->written = 0;
  thread_.post(
      settings_.name,
      [batch = batch_, descriptor = settings_.descriptor] {
        if (!batch->lead.empty() && batch->error == 0) batch->error = write_all(descriptor, batch->lead);
        const std::string_view bytes = batch->bytes;
        while (batch->error == 0 && batch->written < bytes.size()) {
          const std::string_view piece = bytes.substr(batch->written, kPieceBytes);
          batch->error = write_all(descriptor, piece);
          if (batch->error == 0) batch->written += piece.size();
        }
      },
      [this] { written(); });
}

void ConsoleWriter::written() {
  writing_ = false;
  // Training goes on when the reader has gone (EPIPE) or the terminal has hung up (EIO).
  if (batch_->error != 0 && !closed_) {
    closed_ = true;
    give_up();
  }
  write_next();
  if (settings_.on_room) settings_.on_room();
}

void ConsoleWriter::give_up() { buffer_.give_up(std::string_view(batch_->bytes).substr(batch_->written)); }

void ConsoleWriter::wait_for_room(std::int64_t milliseconds) {
  if (writing_ && thread_.wait(milliseconds)) thread_.run_done();
}

void ConsoleWriter::flush() {
  while (writing_) {
    if (thread_.wait(patient_ms(kFlushPatienceMs))) {
      thread_.run_done();
    } else if (thread_.stuck_for(patient_ms(kFlushPatienceMs))) {
      return give_up();
    }
  }
}

}  // namespace elastic::output
