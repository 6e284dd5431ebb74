#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <utility>

#include "cli/run/stacks_collector.h"

namespace elastic::run {

// Readers of stacks that are forks of the test, and do what `serve` does with their channel.
inline StacksCollector::Handlers forked_readers(std::function<void(int channel)> serve) {
  return {.start = [serve = std::move(serve)](const process::Command& command) -> Result<pid_t> {
            const pid_t child = fork();
            if (child == 0) {
              serve(command.channel);
              _exit(0);
            }
            return child;
          },
          .kill =
              [](pid_t reader) {
                kill(reader, SIGKILL);
                CHECK(waitpid(reader, nullptr, 0) == reader);
              }};
}

}  // namespace elastic::run
