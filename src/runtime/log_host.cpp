#include "src/runtime/log_host.h"

#include <utility>

#include "src/base/log.h"
#include "src/base/text.h"

namespace elastic::runtime {

LogHost::LogHost(net::Loop& loop, net::SideThread& thread, std::shared_ptr<output::RunDirectory> directory,
                 Handlers handlers)
    : thread_(thread),
      directory_(std::move(directory)),
      handlers_(std::move(handlers)),
      done_watch_(loop, thread.done_descriptor(), [this] { thread_.run_done(); }) {}

void LogHost::open(protocol::RoundNumber round, int restart_count, int workers) {
  if (!directory_) return handlers_.on_opened(round);
  const auto result = std::make_shared<Status>();
  thread_.post(
      directory_->path(),
      [result, directory = directory_, restart_count, workers] {
        *result = directory->make_rank_directories(restart_count, workers);
      },
      [this, result, round] {
        if (result->has_value()) return handlers_.on_opened(round);
        if (!directory_ || !directory_->is_temporary()) return handlers_.on_failed(round, result->error().text());
        log::warning(format("{}; going on without log directory and error files", result->error().text()));
        directory_.reset();
        handlers_.on_opened(round);
      });
}

void LogHost::prepare(int workers) {
  if (!directory_) return;
  // What fails here is tried again, and told, when the round begins.
  thread_.post(directory_->path(), [directory = directory_, workers] { directory->prepare(workers); });
}

void LogHost::give_up() {
  if (!directory_) return;
  log::warning(format("{} does not answer; going on without log directory and error files",
                      printable(thread_.stuck_for(0).value_or(directory_->path()))));
  directory_.reset();
}

std::string LogHost::error_file(int restart_count, int local_rank) const {
  return directory_ ? directory_->error_file(restart_count, local_rank) : "";
}

}  // namespace elastic::runtime
