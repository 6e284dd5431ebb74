#include "rendezvous/coordinator/crash_loop.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::coordinator;
using protocol::Crash;

namespace {

const Crash kMissing = {Crash::Kind::kImport, 0x11};

TEST_CASE("the same crash in two attempts running is a loop, and names the first of them") {
  CrashLoop loop;
  CHECK(!loop.failed(kMissing, 0));
  CHECK(loop.failed(kMissing, 1) == 0);
}

TEST_CASE("another digest, another kind or a failure that is no crash begins the count of crashes anew") {
  CrashLoop loop;
  CHECK(!loop.failed(kMissing, 0));
  CHECK(!loop.failed(Crash{Crash::Kind::kImport, 0x12}, 1));
  CHECK(!loop.failed(Crash{Crash::Kind::kSyntax, 0x12}, 2));
  CHECK(!loop.failed(kMissing, 3));
  CHECK(!loop.failed({}, 4));
  CHECK(!loop.failed(kMissing, 5));
  CHECK(loop.failed(kMissing, 6) == 5);
}

TEST_CASE("two attempts that failed of no crash are no loop") {
  CrashLoop loop;
  CHECK(!loop.failed({}, 0));
  CHECK(!loop.failed({}, 1));
}

TEST_CASE("workers that ran in between begin the count of crashes anew") {
  CrashLoop loop;
  CHECK(!loop.failed(kMissing, 0));
  loop.interrupted();
  CHECK(!loop.failed(kMissing, 1));
  CHECK(loop.failed(kMissing, 2) == 1);
}

TEST_CASE("the reason names both attempts, what failed, and what restarts anyway") {
  CHECK(text_of_crash_loop(Crash::Kind::kMissingFile, 2, 3) ==
        "the failure is deterministic: attempts 2 and 3 failed with the same missing-file error, so the job is not "
        "restarted "
        "(--crash-loop=restart restarts it anyway)");
}

}  // namespace
