#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/fifo.h"
#include "src/base/result.h"
#include "src/net/loop.h"

namespace elastic::run {

// The FIFOs by which workers say how far they are (ELASTIC_RUN_PROGRESS), one for each local rank.
class ProgressPipes {
 public:
  using OnBytes = std::function<void(int local_rank, std::string_view bytes)>;
  ProgressPipes(net::Loop& loop, OnBytes on_bytes);

  // Makes them in the directory, once. Fails with the system's reason, and then there is none.
  Status open(const std::string& directory, int workers);
  bool is_open() const { return !pipes_.empty(); }
  // Passes over what the last round's workers have written.
  void empty();

  static std::string path(const std::string& directory, int local_rank);

 private:
  net::Loop& loop_;
  OnBytes on_bytes_;
  std::vector<std::unique_ptr<Fifo>> pipes_;  // by local rank
};

}  // namespace elastic::run
