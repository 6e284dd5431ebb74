#include "cli/run/output_host.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/local_host.h"
#include "src/output/lines/line_assembler.h"
#include "src/output/terminal.h"

namespace elastic::run {
namespace {

using output::OurStreams;

// The source of the launcher's own lines on a console.
constexpr int kLauncher = -2;

OurStreams::Kind kind_of(int descriptor) {
  if (isatty(descriptor)) return OurStreams::Kind::kTerminal;
  return fcntl(descriptor, F_GETFD) < 0 ? OurStreams::Kind::kClosed : OurStreams::Kind::kOther;
}

// If kcmp is forbidden, two descriptors of the same file count as the same open file.
bool are_the_same_open_file(int one, int other) {
  const pid_t self = getpid();
  const long compared = syscall(SYS_kcmp, self, self, KCMP_FILE, one, other);
  if (compared >= 0) return compared == 0;
  struct stat first {};
  struct stat second {};
  return fstat(one, &first) == 0 && fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

bool are_one_terminal(const OurStreams& ours) {
  return ours.same && ours.out == OurStreams::Kind::kTerminal && ours.err == OurStreams::Kind::kTerminal;
}

bool is_pipe(int descriptor) {
  struct stat facts {};
  return fstat(descriptor, &facts) == 0 && (S_ISFIFO(facts.st_mode) || S_ISSOCK(facts.st_mode));
}

OurStreams look_at_our_streams() {
  OurStreams ours{.out = kind_of(STDOUT_FILENO), .err = kind_of(STDERR_FILENO)};
  const bool terminals = ours.out == OurStreams::Kind::kTerminal && ours.err == OurStreams::Kind::kTerminal;
  struct stat first {};
  struct stat second {};
  const bool one_terminal = terminals && fstat(STDOUT_FILENO, &first) == 0 && fstat(STDERR_FILENO, &second) == 0 &&
                            first.st_rdev == second.st_rdev;
  ours.same = one_terminal || are_the_same_open_file(STDOUT_FILENO, STDERR_FILENO);
  if (ours.err == OurStreams::Kind::kTerminal) ours.can_make_terminals = output::make_terminal().has_value();
  return ours;
}

}  // namespace

LogHost::LogHost(net::Loop& loop, net::SideThread& thread, std::shared_ptr<output::RunDirectory> directory,
                 Handlers handlers)
    : thread_(thread),
      directory_(std::move(directory)),
      handlers_(std::move(handlers)),
      done_watch_(loop, thread.done_descriptor(), [this] { thread_.run_done(); }) {}

void LogHost::open(protocol::RoundNumber round, int restart_count, output::WantedFiles wanted) {
  if (!directory_) return handlers_.on_opened(round, {});
  const bool keeps_count = attempt_.restart_count == restart_count;
  attempt_ = {restart_count, keeps_count ? std::optional<unsigned>(round) : std::nullopt};
  const auto result = std::make_shared<Result<output::RoundFiles>>();
  thread_.post(
      directory_->path(),
      [result, directory = directory_, attempt = attempt_, wanted = std::move(wanted)] {
        *result = directory->open(attempt, wanted);
      },
      [this, result, round] {
        if (result->has_value()) return handlers_.on_opened(round, std::move(**result));
        // The first round fails if the user has named the directory; a job that has begun goes on.
        const bool refuse = round == 0 && directory_ && !directory_->is_temporary();
        if (refuse) return handlers_.on_failed(round, result->error().text());
        log::warning("no_log_directory",
                     format("{}; going on without log directory and error files", result->error().text()));
        directory_.reset();
        handlers_.on_opened(round, {});
      });
}

void LogHost::prepare(int workers) {
  if (!directory_) return;
  // If this fails, open() tries again, and reports it.
  thread_.post(directory_->path(), [directory = directory_, workers] { directory->prepare(workers); });
}

void LogHost::give_up() {
  if (!directory_) return;
  log::warning("no_log_directory", format("{} does not answer; going on without log directory and error files",
                                          printable(thread_.stuck_for(0).value_or(directory_->path()))));
  directory_.reset();
}

std::string LogHost::rank_file(int local_rank, std::string_view name) const {
  return directory_ ? directory_->rank_file(attempt_, local_rank, name) : "";
}

std::string LogHost::filtered_file(std::string_view stream) const {
  return directory_ ? directory_->filtered_file(attempt_, stream) : "";
}

OutputHost::OutputHost(net::Loop& loop, const OutputSettings& settings, net::SideThread& files,
                       std::shared_ptr<output::RunDirectory> directory, Handlers handlers)
    : settings_(settings),
      files_(files),
      handlers_(std::move(handlers)),
      ours_(look_at_our_streams()),
      hostname_(net::host_name()),
      logs_(loop, files, std::move(directory),
            {.on_opened = [this](protocol::RoundNumber round,
                                 output::RoundFiles opened_files) { opened(round, std::move(opened_files)); },
             .on_failed = [this](protocol::RoundNumber round,
                                 std::string reason) { handlers_.on_failed(round, std::move(reason)); }}),
      status_line_(all_passes_through_us() ? std::make_shared<output::StatusLine>() : nullptr),
      err_thread_(std::make_shared<output::ConsoleThread>(loop)),
      out_({.descriptor = STDOUT_FILENO,
            .name = "stdout",
            .notice = output::ConsoleBuffer::Notice::kNone,
            .thread = are_one_terminal(ours_) ? err_thread_ : std::make_shared<output::ConsoleThread>(loop),
            .status = are_one_terminal(ours_) ? status_line_ : nullptr,
            .on_room = [this] { pump_.room(); }}),
      err_({.descriptor = STDERR_FILENO,
            .name = "stderr",
            .notice = output::ConsoleBuffer::Notice::kInPlace,
            .thread = err_thread_,
            .status = status_line_,
            .on_room = [this] { pump_.room(); }}),
      pump_(loop, files,
            {.out_filter = output::LineFilter(settings.stdout_filters),
             .err_filter = output::LineFilter(settings.stderr_filters),
             .log_max_bytes = settings.log_max_bytes,
             .on_read = handlers_.on_read},
            out_, err_),
      // Our parent, the guardian, is the process that the shell has started.
      status_(loop, {.line = status_line_, .job = getppid()}, out_, err_) {
  log::set_output([this](std::string_view line) { err_.add(kLauncher, line); });
}

OutputHost::~OutputHost() { log::set_output({}); }

output::OutputFlags OutputHost::flags_of(int local_rank) const {
  output::OutputFlags flags = settings_.ranks.at(static_cast<std::size_t>(local_rank));
  flags.filters_stdout = !settings_.stdout_filters.empty();
  flags.filters_stderr = !settings_.stderr_filters.empty();
  flags.log_dir = logs_.is_kept();
  flags.stderr_tail = settings_.stderr_tail;
  flags.rotated = settings_.log_max_bytes > 0;
  return flags;
}

void OutputHost::open_round(protocol::RoundNumber round, int restart_count) {
  output::WantedFiles wanted;
  for (const output::OutputFlags& flags : settings_.ranks) wanted.ranks.push_back(flags.redirects | flags.tee);
  if (!settings_.stdout_filters.empty()) wanted.filtered |= output::kStdoutBit;
  if (!settings_.stderr_filters.empty()) wanted.filtered |= output::kStderrBit;
  logs_.open(round, restart_count, std::move(wanted));
}

void OutputHost::opened(protocol::RoundNumber round, output::RoundFiles files) {
  round_files_ = std::move(files);
  const auto filtered = [this](UniqueFd& file, std::string_view stream) -> std::shared_ptr<output::LogFile> {
    if (!file) return nullptr;
    const std::string path = logs_.filtered_file(stream);
    return std::make_shared<output::LogFile>(files_, path, std::move(file), settings_.log_max_bytes,
                                             pump_.handlers_for(path));
  };
  pump_.use_filtered(filtered(round_files_.filtered_out, "stdout"), filtered(round_files_.filtered_err, "stderr"));
  handlers_.on_opened(round);
}

Result<output::WorkerEnds> OutputHost::open_worker(int local_rank, int rank) {
  output::WorkerOutput output{
      .plan = output::plan_streams(flags_of(local_rank), ours_),
      .prefix = output::line_prefix(
          settings_.prefix_template,
          {.role_name = settings_.role, .rank = rank, .local_rank = local_rank, .hostname = hostname_}),
      .out_file = {},
      .err_file = {},
      .out_path = logs_.rank_file(local_rank, "stdout.log"),
      .err_path = logs_.rank_file(local_rank, "stderr.log"),
  };
  const auto index = static_cast<std::size_t>(local_rank);
  if (index < round_files_.ranks.size()) {
    output.out_file = std::move(round_files_.ranks[index].out);
    output.err_file = std::move(round_files_.ranks[index].err);
  }
  tails_.resize(settings_.ranks.size());
  tails_[index] = {output.plan.tail, output.err_path};
  return pump_.open(local_rank, std::move(output));
}

void OutputHost::begin_round() {
  tails_.clear();
  pump_.begin_round();
}

std::vector<WorkerStderr> OutputHost::stderrs() const {
  std::vector<WorkerStderr> all(tails_.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int local_rank = static_cast<int>(i);
    switch (tails_[i].source) {
      case output::TailSource::kKept: all[i].kept = pump_.tail(local_rank); break;
      case output::TailSource::kFile:
        if (logs_.is_kept()) all[i].file = tails_[i].file;
        break;
      case output::TailSource::kNone: all[i].none_because = settings_.no_tail_because; break;
      case output::TailSource::kUnavailable:
        all[i].none_because = "it is a terminal, and no pseudo-terminal could be made (/dev/ptmx)";
        break;
    }
  }
  return all;
}

// Whether everything that workers write to the terminal passes through the launcher: only then no worker's line can
// appear in the middle of the status line.
bool OutputHost::all_passes_through_us() const {
  if (!settings_.status_line || ours_.err != OurStreams::Kind::kTerminal) return false;
  // A program behind a pipe (tee, less) may write to the same terminal.
  if (is_pipe(STDOUT_FILENO)) return false;
  for (std::size_t rank = 0; rank < settings_.ranks.size(); ++rank) {
    const output::RankStreams plan = output::plan_streams(flags_of(static_cast<int>(rank)), ours_);
    if (plan.err.kind == output::StreamPlan::Kind::kInherit) return false;
    if (plan.out.kind == output::StreamPlan::Kind::kInherit && are_one_terminal(ours_)) return false;
  }
  return true;
}

void OutputHost::flush() {
  status_.wait_for({});
  out_.flush();
  err_.flush();
  status_.hide();
  log::set_output({});
  if (const output::Dropped& dropped = out_.dropped(); dropped.lines > 0) {
    log::warning("dropped", format("stdout: {}", output::dropped_text(dropped, out_.why_dropped())));
  }
}

}  // namespace elastic::run
