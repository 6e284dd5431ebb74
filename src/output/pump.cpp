#include "src/output/pump.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "src/base/log.h"
#include "src/base/patience.h"
#include "src/base/text.h"
#include "src/output/lines/line_assembler.h"
#include "src/output/terminal.h"

namespace elastic::output {
namespace {

constexpr std::size_t kReadBytes = 256 * 1024;
// The size of pipes for logged streams: the most that an unprivileged user may have, so that a worker seldom waits.
constexpr int kPipeBytes = 1024 * 1024;
// The most reads for what a worker has left in a pipe, for another process may still be writing to it.
constexpr int kDrainReads = 64;
// After so much silence an incomplete line is shown: a prompt, or a dot for each step. A line with a prefix is
// cut in two by that, so it has to wait longer, for the worker may only have been kept from writing the rest.
constexpr std::int64_t kRestMs = 100;
constexpr std::int64_t kPrefixedRestMs = 1000;
// The time between two checks of a console or a file that is slow.
constexpr std::int64_t kHoldMs = 50;
// How long workers wait for a log file that does not respond, before it is given up.
constexpr std::int64_t kFilePatienceMs = 1000;

// One buffer serves all streams, for the bytes are passed on at once.
std::array<char, kReadBytes> read_buffer;

void set_nonblocking(int descriptor) { fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK); }

}  // namespace

struct Pump::Stream {
  int local_rank = 0;
  int source = 0;  // identifies the writer to a console
  StreamPlan plan;
  bool is_err = false;
  UniqueFd descriptor;
  std::unique_ptr<net::ReadWatch> watch;  // null while the stream is held back, and once it has ended
  bool ended = false;
  bool held = false;
  std::int64_t read_at_ms = 0;  // by the loop's clock
  std::variant<PlainAssembler, LineAssembler> lines;
  std::optional<LineAssembler> filter_lines;  // never flushed in the middle of a line
  std::size_t prefix_bytes = 0;
  std::shared_ptr<LogFile> file;
  Tail* tail = nullptr;
  bool has_rest() const {
    return std::visit([](const auto& assembler) { return assembler.has_rest(); }, lines);
  }
};

Pump::Pump(net::Loop& loop, net::SideThread& files, Settings settings, ConsoleWriter& out, ConsoleWriter& err)
    : loop_(loop),
      files_(files),
      settings_(std::move(settings)),
      out_console_(out),
      err_console_(err),
      hold_timer_(loop),
      rest_timer_(loop) {}

Pump::~Pump() = default;

LogFile::Handlers Pump::handlers_for(const std::string& path) {
  return {.on_room = [this] { room(); },
          .on_lost =
              [path](const std::string& reason) {
                log::warning("log_file_lost",
                             format("cannot write {}: {}; what follows is not kept", printable(path), reason));
              }};
}

void Pump::use_filtered(std::shared_ptr<LogFile> out, std::shared_ptr<LogFile> err) {
  out_filtered_ = std::move(out);
  err_filtered_ = std::move(err);
}

Result<WorkerEnds> Pump::open(int local_rank, WorkerOutput output) {
  WorkerEnds ends;
  struct One {
    const StreamPlan& plan;
    int& end;
    UniqueFd& file;
    const std::string& path;
    bool is_err;
  };
  tails_.erase(local_rank);
  for (One one : {One{output.plan.out, ends.out, output.out_file, output.out_path, false},
                  One{output.plan.err, ends.err, output.err_file, output.err_path, true}}) {
    if (one.is_err && output.plan.shared) {
      ends.err = ends.out;
      break;
    }
    switch (one.plan.kind) {
      case StreamPlan::Kind::kInherit: continue;
      case StreamPlan::Kind::kFile:
        one.end = one.file.get();
        worker_files_[local_rank].emplace_back(one.path, std::move(one.file));
        continue;
      case StreamPlan::Kind::kNull: {
        UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        if (!null) return fail_errno("cannot open /dev/null", errno);
        one.end = null.get();
        worker_ends_[local_rank].push_back(std::move(null));
        continue;
      }
      case StreamPlan::Kind::kPipe:
      case StreamPlan::Kind::kPty: break;
    }
    UniqueFd worker_end;
    auto stream = make_stream(one.plan, worker_end);
    if (!stream) return std::unexpected(std::move(stream.error()));
    Stream& made = **stream;
    made.local_rank = local_rank;
    made.is_err = one.is_err || output.plan.shared;
    made.source = 2 * local_rank + (one.is_err ? 1 : 0);
    made.plan = one.plan;
    if (one.plan.has_prefix) made.lines.emplace<LineAssembler>(output.prefix);
    if (one.plan.to_filtered) made.filter_lines.emplace(output.prefix);
    made.prefix_bytes = output.prefix.size();
    if (one.plan.keeps_tail) made.tail = &tails_.try_emplace(local_rank).first->second;
    if (one.plan.to_file) {
      made.file = std::make_shared<LogFile>(files_, one.path, std::move(one.file), settings_.log_max_bytes,
                                            handlers_for(one.path));
    }
    one.end = worker_end.get();
    worker_ends_[local_rank].push_back(std::move(worker_end));
    made.watch = std::make_unique<net::ReadWatch>(loop_, made.descriptor.get(), [this, &made] { readable(made); });
    streams_.push_back(std::move(*stream));
  }
  return ends;
}

Result<std::unique_ptr<Pump::Stream>> Pump::make_stream(const StreamPlan& plan, UniqueFd& worker_end) {
  auto stream = std::make_unique<Stream>();
  if (plan.kind == StreamPlan::Kind::kPty) {
    auto terminal = make_terminal();
    if (!terminal) return std::unexpected(std::move(terminal.error()));
    stream->descriptor = std::move(terminal->ours);
    worker_end = std::move(terminal->workers);
  } else {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe for a worker's output", errno);
    stream->descriptor = UniqueFd(ends[0]);
    worker_end = UniqueFd(ends[1]);
    if (plan.to_file) fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);  // if that is refused, the size stays
  }
  set_nonblocking(stream->descriptor.get());
  return stream;
}

void Pump::started(int local_rank) {
  worker_ends_.erase(local_rank);
  const auto files = worker_files_.extract(local_rank);
  if (!files) return;
  for (auto& [path, file] : files.mapped()) close_later(files_, path, std::move(file));
}

void Pump::readable(Stream& stream) {
  if (is_held_back(stream)) return hold(stream);
  read_once(stream);
}

bool Pump::read_once(Stream& stream) {
  if (stream.ended) return false;
  const ssize_t count = read(stream.descriptor.get(), read_buffer.data(), read_buffer.size());
  if (count > 0) {
    write_lines(stream, {read_buffer.data(), static_cast<std::size_t>(count)});
    return true;
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  // The end of the file, or EIO where no process has the terminal open any more.
  stream.ended = true;
  stream.watch.reset();
  flush(stream);
  return false;
}

void Pump::write_lines(Stream& stream, std::string_view bytes) {
  if (stream.tail != nullptr) stream.tail->add(bytes);
  if (stream.file) stream.file->add(bytes);
  if (settings_.on_read) settings_.on_read(stream.local_rank, stream.is_err, bytes);
  ConsoleWriter& console = console_of(stream);
  if (stream.plan.kind == StreamPlan::Kind::kPty) return console.add_raw(stream.source, bytes);
  if (stream.plan.to_console) {
    lines_.clear();
    std::visit([&](auto& assembler) { assembler.push(bytes, lines_); }, stream.lines);
    console.add(stream.source, lines_);
    stream.read_at_ms = loop_.now_ms();
    if (stream.has_rest() && !rest_timer_runs_) watch_rests(kRestMs);
  }
  if (!stream.filter_lines) return;
  lines_.clear();
  stream.filter_lines->push(bytes, lines_);
  copy_matching(stream);
}

// Shows incomplete lines of streams that have been silent for long enough, and checks the others later.
void Pump::watch_rests(std::int64_t delay_ms) {
  rest_timer_runs_ = true;
  rest_timer_.start(delay_ms, [this] {
    rest_timer_runs_ = false;
    for (const auto& stream : streams_) {
      if (!stream->has_rest() || stream->held) continue;
      const std::int64_t patience_ms = stream->plan.has_prefix ? kPrefixedRestMs : kRestMs;
      const bool silent = loop_.now_ms() - stream->read_at_ms >= patience_ms;
      // Where it was this process that had no time, the rest of the line is there already.
      if (silent && !is_held_back(*stream) && !read_once(*stream)) {
        flush(*stream);
      } else if (stream->has_rest() && !rest_timer_runs_) {
        watch_rests(kRestMs);
      }
    }
  });
}

// Copies those of `lines_`, which the stream's assembler for the filter has produced, that match.
void Pump::copy_matching(const Stream& stream) {
  const std::shared_ptr<LogFile>& filtered = stream.is_err ? err_filtered_ : out_filtered_;
  if (!filtered) return;
  std::string matching;
  (stream.is_err ? settings_.err_filter : settings_.out_filter).copy_matching(lines_, stream.prefix_bytes, matching);
  if (!matching.empty()) filtered->add(matching);
}

void Pump::flush(Stream& stream) {
  if (!stream.plan.to_console || !stream.has_rest()) return;
  lines_.clear();
  std::visit([&](auto& assembler) { assembler.flush(lines_); }, stream.lines);
  console_of(stream).add(stream.source, lines_);
}

bool Pump::is_held_back(const Stream& stream) const {
  if (stream.file && stream.file->is_behind()) return true;
  return is_console_behind(stream);
}

ConsoleWriter& Pump::console_of(const Stream& stream) const { return stream.is_err ? err_console_ : out_console_; }

bool Pump::is_console_behind(const Stream& stream) const {
  return stream.plan.to_console && console_of(stream).is_behind();
}

void Pump::hold(Stream& stream) {
  stream.watch.reset();
  stream.held = true;
  if (hold_timer_runs_) return;
  hold_timer_runs_ = true;
  hold_timer_.start(kHoldMs, [this] { look_at_held(); });
}

void Pump::look_at_held() {
  hold_timer_runs_ = false;
  const bool files_hang = files_.stuck_for(patient_ms(kFilePatienceMs)).has_value();
  for (const auto& stream : streams_) {
    if (!files_hang || !stream->file || !stream->file->is_behind()) continue;
    log::warning("log_file_lost",
                 format("{} does not answer; what follows is not kept", printable(stream->file->path())));
    stream->file->give_up();
  }
  room();
}

void Pump::room() {
  for (const auto& stream : streams_) {
    if (!stream->held) continue;
    if (is_held_back(*stream)) {
      hold(*stream);
      continue;
    }
    stream->held = false;
    Stream& again = *stream;
    again.watch = std::make_unique<net::ReadWatch>(loop_, again.descriptor.get(), [this, &again] { readable(again); });
  }
}

void Pump::drain(int local_rank) {
  for (const auto& stream : streams_) {
    if (stream->local_rank != local_rank) continue;
    int reads = 0;
    while (reads < kDrainReads && !is_console_behind(*stream) && read_once(*stream)) ++reads;
    if (reads < kDrainReads && !is_console_behind(*stream)) flush(*stream);
  }
}

void Pump::end_round() {
  for (ConsoleWriter* console : {&out_console_, &err_console_}) console->expect_rest();
  for (const auto& stream : streams_) {
    int reads = 0;
    while (reads < kDrainReads && read_once(*stream)) ++reads;
    flush(*stream);
    if (!stream->filter_lines) continue;
    lines_.clear();
    stream->filter_lines->flush(lines_);
    copy_matching(*stream);
  }
  for (ConsoleWriter* console : {&out_console_, &err_console_}) console->rest_has_come();
  streams_.clear();
  worker_ends_.clear();
  worker_files_.clear();
  out_filtered_.reset();
  err_filtered_.reset();
}

TailText Pump::tail(int local_rank) const {
  const auto found = tails_.find(local_rank);
  return found == tails_.end() ? TailText{} : found->second.text();
}

void Pump::resize() {
  for (const auto& stream : streams_) {
    if (stream->plan.kind == StreamPlan::Kind::kPty) copy_terminal_size(stream->descriptor.get());
  }
}

}  // namespace elastic::output
