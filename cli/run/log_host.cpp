#include "cli/run/log_host.h"

#include <utility>

#include "src/base/log.h"
#include "src/base/text.h"

namespace elastic::run {

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

}  // namespace elastic::run
