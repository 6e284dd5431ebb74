#include "cli/run/stacks_collector.h"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/run/reader_test_support.h"
#include "src/base/json.h"
#include "src/base/json_archive.h"
#include "src/base/text.h"
#include "src/net/loop.h"

using namespace elastic;
using namespace elastic::run;

namespace {

// What a reader of the test's own says to the question about a process; empty: nothing, for ever.
using Answers = std::function<std::string(int pid)>;

std::string answer(int pid, bool is_last, const std::string& function = "") {
  stacks::ReaderAnswer answer{.is_last = is_last};
  answer.look.pid = pid;
  answer.look.threads = {{.id = pid, .wait = "sleeping"}};
  if (!function.empty()) answer.look.threads[0].frames = {{function, "a.py", 1}};
  return write_json(answer, JsonForm::kForgiving).dump() + "\n";
}

void serve(int channel, const Answers& answers) {
  stacks::ReaderQuestion question;
  while (recv(channel, &question, sizeof question, MSG_WAITALL) == static_cast<ssize_t>(sizeof question)) {
    const std::string text = answers(question.pid);
    if (text == "end") return;
    if (send(channel, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) return;
  }
}

// Each look as "pid function" or "pid problem", children behind their target.
std::vector<std::string> collected(std::vector<StacksTarget> targets, const Answers& answers, int& readers) {
  net::Loop loop;
  StacksCollector::Handlers handlers = forked_readers([&](int channel) { serve(channel, answers); });
  handlers.start = [&readers, start = handlers.start](const process::Command& command) {
    ++readers;
    return start(command);
  };
  StacksCollector collector(loop, std::move(handlers));
  std::vector<std::string> told;
  const auto tell = [&told](const stacks::ProcessLook& look) {
    const stacks::ThreadLook& thread = look.threads.at(0);
    const std::string what = thread.frames.empty() ? look.problem : thread.frames[0].function;
    told.push_back(format("{} {}{}", look.pid, thread.wait.empty() ? "" : "sleeping, ", what));
  };
  collector.collect(std::move(targets), [&](const std::vector<stacks::RankLook>& looks) {
    for (const stacks::RankLook& look : looks) {
      tell(look.process);
      for (const stacks::ProcessLook& child : look.children) tell(child);
    }
    loop.stop();
  });
  CHECK(collector.is_collecting());
  loop.run();
  CHECK(!collector.is_collecting());
  return told;
}

using Lines = std::vector<std::string>;
// Numbers that no process has.
constexpr int kOne = 0x40000001, kTwo = 0x40000002, kThree = 0x40000003;

}  // namespace

TEST_CASE("one reader is asked about all processes, one after the other, children behind the worker") {
  int readers = 0;
  const Answers all = [](int pid) { return answer(pid, false) + answer(pid, true, format("f{}", pid - kOne)); };
  CHECK(collected({{.rank = 0, .pid = kOne, .children = {kTwo}}, {.rank = 1, .pid = kThree}}, all, readers) ==
        Lines{format("{} sleeping, f0", kOne), format("{} sleeping, f1", kTwo), format("{} sleeping, f2", kThree)});
  CHECK(readers == 1);
  CHECK(collected({}, all, readers).empty());
}

TEST_CASE("a process that cannot be read in time costs its own stack only, and what the kernel says of it is kept") {
  int readers = 0;
  const Answers late = [](int pid) { return answer(pid, false) + (pid == kOne ? "" : answer(pid, true, "f")); };
  CHECK(collected({{.pid = kOne}, {.pid = kTwo}}, late, readers) ==
        Lines{format("{} sleeping, its memory could not be read within 1 s", kOne), format("{} sleeping, f", kTwo)});
  CHECK(readers == 2);
}

TEST_CASE("a reader that ends, says too much or makes no sense is replaced by another one") {
  for (const auto& [said, problem] : {std::pair<std::string, std::string>{"end", "the process that read it has ended"},
                                      {"{}\n", "what was read of it makes no sense"},
                                      {"{}\n{}\n", "what was read of it makes no sense"},
                                      {answer(kTwo, true, "f"), "what was read of it makes no sense"}}) {
    int readers = 0;
    const Answers wrong = [&said = said](int pid) { return pid == kOne ? said : answer(pid, true, "f"); };
    CHECK(collected({{.pid = kOne}, {.pid = kTwo}}, wrong, readers) ==
          Lines{format("{} {}", kOne, problem), format("{} sleeping, f", kTwo)});
    CHECK(readers == 2);
  }
}

TEST_CASE("a reader that says more than it was asked is replaced, and what it says too much is of no process") {
  const Answers twice = [](int pid) { return answer(pid, true, "f") + answer(pid, true, "g"); };
  int readers = 0;
  CHECK(collected({{.pid = kOne}, {.pid = kTwo}}, twice, readers) ==
        Lines{format("{} sleeping, f", kOne), format("{} sleeping, f", kTwo)});
  CHECK(readers == 2);
  const Answers never_last = [](int pid) { return answer(pid, false) + answer(pid, false); };
  CHECK(collected({{.pid = kOne}}, never_last, readers) ==
        Lines{format("{} sleeping, what was read of it makes no sense", kOne)});
}

TEST_CASE("the descendants of a process are found in whatever order they are listed") {
  std::vector<process::ProcessFacts> all(5);
  const std::pair<pid_t, pid_t> lines[] = {{9, 8}, {8, 5}, {7, 4}, {5, 1}, {6, 5}};
  for (std::size_t i = 0; i < all.size(); ++i) std::tie(all[i].pid, all[i].parent) = lines[i];
  CHECK(children_of(5, all) == std::vector<pid_t>{6, 8, 9});
  CHECK(children_of(4, all) == std::vector<pid_t>{7});
  CHECK(children_of(9, all).empty());
}

TEST_CASE("of the processes that a worker has started so many are looked at and no more") {
  int readers = 0;
  StacksTarget target{.pid = kOne};
  for (int i = 0; i < 70; ++i) target.children.push_back(kTwo + i);
  const auto told = collected(
      {target}, [](int pid) { return answer(pid, true, "f"); }, readers);
  CHECK(told.size() == 1 + stacks::kMostChildren);
}
