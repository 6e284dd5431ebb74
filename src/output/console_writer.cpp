#include "src/output/console_writer.h"

#include <utility>

#include "src/output/write_all.h"

namespace elastic::output {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;

}  // namespace

ConsoleWriter::ConsoleWriter(net::Loop& loop, int descriptor, std::string name, ConsoleBuffer::Notice notice,
                             std::function<void()> on_room)
    : descriptor_(descriptor),
      name_(std::move(name)),
      on_room_(std::move(on_room)),
      buffer_(notice),
      done_watch_(loop, thread_.done_descriptor(), [this] { thread_.run_done(); }) {}

void ConsoleWriter::add(int source, std::string_view lines) {
  buffer_.add(source, lines);
  write_next();
}

void ConsoleWriter::add_raw(int source, std::string_view bytes) {
  buffer_.add_raw(source, bytes);
  write_next();
}

bool ConsoleWriter::is_behind() {
  const bool much_waits = buffer_.size() > kBehindBytes;
  impatient_ = much_waits && (impatient_ || thread_.stuck_for(kPatienceMs));
  return much_waits && !impatient_;
}

void ConsoleWriter::write_next() {
  if (writing_ || !buffer_.take(batch_->bytes, kBatchBytes)) return;
  writing_ = true;
  batch_->written = 0;
  thread_.post(
      name_,
      [batch = batch_, descriptor = descriptor_] {
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
  // A reader that has gone (EPIPE), a terminal that hung up (EIO): training goes on.
  if (batch_->error != 0 && !closed_) {
    closed_ = true;
    give_up();
  }
  write_next();
  if (on_room_) on_room_();
}

void ConsoleWriter::give_up() { buffer_.give_up(std::string_view(batch_->bytes).substr(batch_->written)); }

void ConsoleWriter::flush() {
  while (writing_) {
    if (thread_.wait(kFlushPatienceMs)) {
      thread_.run_done();
    } else if (thread_.stuck_for(kFlushPatienceMs)) {
      return give_up();
    }
  }
}

}  // namespace elastic::output
