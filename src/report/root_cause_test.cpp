#include "src/report/root_cause.h"

#include <doctest/doctest.h>

#include <csignal>

using namespace elastic;
using namespace elastic::report;

namespace {

constexpr const char* kPeerLost =
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4711\n";
constexpr const char* kOutOfMemory = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.\n";

FailedWorker ended(int rank, ExitStatus exit, std::string stderr_text, bool stopped = false) {
  return {.rank = rank,
          .local_rank = rank,
          .pid = 4700 + rank,
          .exit = exit,
          .stopped_by_us = stopped,
          .tail = {.bytes = std::move(stderr_text)}};
}

int rank_of_root_cause(std::vector<FailedWorker> failures) {
  const JobReport report{.failures = std::move(failures)};
  const auto root_cause = find_root_cause(report);
  return root_cause ? root_cause->worker->rank : -1;
}

}  // namespace

TEST_CASE("a first failure that has only lost a peer gives way to whoever says more") {
  const FailedWorker victim = ended(0, {.code = 1}, kPeerLost);
  CHECK(rank_of_root_cause({victim}) == 0);
  CHECK(rank_of_root_cause({victim, ended(1, {.code = 1}, kPeerLost)}) == 0);
  CHECK(rank_of_root_cause({victim, ended(1, {.code = 1}, kPeerLost), ended(2, {.code = 1}, kOutOfMemory)}) == 2);
  SUBCASE("also when it was still on its way out and had to be stopped") {
    CHECK(rank_of_root_cause({victim, ended(3, {.signal = SIGTERM}, kOutOfMemory, true)}) == 3);
  }
  SUBCASE("but who failed by itself comes first") {
    CHECK(rank_of_root_cause(
              {victim, ended(3, {.signal = SIGTERM}, kOutOfMemory, true), ended(2, {.code = 1}, kOutOfMemory)}) == 2);
  }
  SUBCASE("and how a worker ended by our signal says nothing") {
    CHECK(rank_of_root_cause({victim, ended(3, {.signal = SIGKILL}, "epoch 1\n", true)}) == 0);
  }
}

TEST_CASE("a first failure with a cause of its own is the root cause, whatever the others say") {
  CHECK(rank_of_root_cause({ended(0, {.signal = SIGSEGV}, ""), ended(1, {.code = 1}, kOutOfMemory)}) == 0);
}

TEST_CASE("without a rule that fits there is no root cause") {
  CHECK(rank_of_root_cause({}) == -1);
  CHECK(rank_of_root_cause({ended(0, {.code = 1}, "bye\n")}) == -1);
}
