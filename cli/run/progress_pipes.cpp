#include "cli/run/progress_pipes.h"

#include <utility>

#include "src/base/text.h"

namespace elastic::run {

ProgressPipes::ProgressPipes(net::Loop& loop, OnBytes on_bytes) : loop_(loop), on_bytes_(std::move(on_bytes)) {}

std::string ProgressPipes::path(const std::string& directory, int local_rank) {
  return format("{}/progress_{}", directory, local_rank);
}

Status ProgressPipes::open(const std::string& directory, int workers) {
  std::vector<std::unique_ptr<Fifo>> made;
  for (int local_rank = 0; local_rank < workers; ++local_rank) {
    made.push_back(
        std::make_unique<Fifo>(loop_, [this, local_rank](std::string_view bytes) { on_bytes_(local_rank, bytes); }));
    if (Status status = made.back()->make(path(directory, local_rank)); !status) return status;
  }
  pipes_ = std::move(made);
  return {};
}

void ProgressPipes::empty() {
  for (const auto& pipe : pipes_) pipe->empty();
}

}  // namespace elastic::run
