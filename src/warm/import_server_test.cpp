#include "src/warm/import_server.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>

#include <string>
#include <utility>
#include <vector>

using namespace elastic;
using namespace elastic::warm;

namespace {

// A server that is a shell instead of a Python. Its script finds the launcher's socket as descriptor 3.
struct Fixture {
  net::Loop loop;
  process::InheritedState inherited = process::InheritedState::capture();
  std::string why;
  bool is_for_good = false;
  bool is_ready = false;
  std::vector<int> wanted = {2};  // how many are to wait when the server is ready, and from each that has come on
  std::int64_t park_ms = 60'000;
  process::WorkerTree tree{loop,
                           {.inherited = inherited},
                           {.on_exit = [](int, ExitStatus) {},
                            .on_aside_exit = [this](ExitStatus status) { server.has_ended(status); },
                            .on_all_gone = [] {}}};
  ImportServer server{loop,
                      tree,
                      {.on_ready =
                           [this](const Ready&) {
                             is_ready = true;
                             park_next();
                           },
                       .on_struck = [](const Struck&) {},
                       .on_parked = [this] { park_next(); },
                       .on_taken = [](const Result<std::vector<pid_t>>&) {},
                       .on_gone =
                           [this](const std::string& text, bool for_good) {
                             why = text;
                             is_for_good = for_good;
                             loop.stop();
                           }}};
  ~Fixture() { sigprocmask(SIG_SETMASK, &inherited.signal_mask, nullptr); }

  void park_next() {
    if (wanted.empty()) return;
    const int count = wanted.front();
    wanted.erase(wanted.begin());
    server.park(count, park_ms);
  }
  // Returns when the server has gone.
  void run(const std::string& script, std::int64_t deadline_ms = 60'000) {
    ImportServer::Start how;
    how.python = "/bin/sh";
    how.options = {"sh", "-c", script};
    how.variables = {"PATH=/usr/bin:/bin"};
    how.deadline_ms = deadline_ms;
    REQUIRE(server.start(how));
    loop.run();
    while (waitpid(-1, nullptr, 0) > 0) {  // none of it lives on
    }
  }
};

constexpr const char* kSaysThatItIsReady = "printf 'R\\0001\\0001\\0001\\0001\\000' >&3; ";

}  // namespace

TEST_CASE("an import server that hangs before it is ready is killed at its deadline, for good") {
  Fixture f;
  f.run("sleep 1000 & exec sleep 1000", 50);
  CHECK(f.why == "the import server has not imported its modules within 0 s");
  CHECK(f.is_for_good);
}

TEST_CASE("an import server that does not fork what it is told to is killed at its deadline, and started again") {
  Fixture f;
  f.park_ms = 50;
  f.run(kSaysThatItIsReady + std::string("exec sleep 1000"));
  CHECK(f.is_ready);
  CHECK(f.why == "the import server has not forked workers within 0 s");
  CHECK_FALSE(f.is_for_good);
}

TEST_CASE("an import server that exits before it is ready would do so again, and one that is killed would not") {
  Fixture exits;
  exits.run("exit 1");
  CHECK(exits.why == "the import server exited with code 1");
  CHECK(exits.is_for_good);
  Fixture killed;
  killed.run("kill -KILL $$");
  CHECK(killed.why == "the import server was killed by SIGKILL");
  CHECK_FALSE(killed.is_for_good);
  Fixture later;
  later.run(kSaysThatItIsReady + std::string("exit 1"));
  CHECK(later.is_ready);
  CHECK_FALSE(later.is_for_good);
}

TEST_CASE("an import server that closes its channel is killed") {
  Fixture f;
  f.run("exec sleep 1000 3>&-");
  CHECK(f.why == "the import server was killed by SIGKILL");
}

TEST_CASE("workers that are on their way are not ordered once more, and those that have died there are") {
  const std::string orders = "order() { dd bs=64 count=1 <&3 2>/dev/null; }; ";
  // While one of four is there, five are wanted, and then four again.
  Fixture comes;
  comes.wanted = {4, 5, 4};
  comes.run(kSaysThatItIsReady + orders +
            "a=$(order); printf W1 >&3; b=$(order); printf W1 >&3; printf \"F\\000$a $b\" >&3; exec sleep 1000");
  CHECK(comes.why == "P4 P1");
  // Of four one has come, and no other will.
  Fixture dies;
  dies.wanted = {4, 4, 5};
  dies.run(kSaysThatItIsReady + orders +
           "a=$(order); printf W1 >&3; printf D >&3; printf W1 >&3; b=$(order); printf \"F\\000$a $b\" >&3; "
           "exec sleep 1000");
  CHECK(dies.why == "P4 P3");
}
