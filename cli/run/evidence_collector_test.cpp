#include "cli/run/evidence_collector.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "health/evidence_reader/reader_process.h"
#include "health/stack_reader/reader_process.h"
#include "src/base/json.h"
#include "src/base/json_archive.h"
#include "src/base/text.h"
#include "src/net/loop.h"
#include "src/net/side_thread.h"

using namespace elastic;
using namespace elastic::run;
using namespace std::string_literals;

namespace {

// Numbers that no process has.
constexpr int kOne = 0x40000001, kTwo = 0x40000002;

// What the readers of a test say. An empty text: nothing, for ever; "end": it ends.
struct Said {
  std::function<std::string(int pid)> stack;                // the innermost function of a process
  std::function<std::string(const std::string&)> evidence;  // to a task's line, without the line's end
};

void serve_stacks(int channel, const Said& said) {
  stacks::ReaderQuestion question;
  while (recv(channel, &question, sizeof question, MSG_WAITALL) == static_cast<ssize_t>(sizeof question)) {
    const std::string function = said.stack(question.pid);
    if (function.empty()) continue;
    stacks::ReaderAnswer answer{.is_last = true};
    answer.look.pid = question.pid;
    answer.look.threads = {{.id = question.pid, .frames = {{function, "train.py", 7}}}};
    const std::string line = write_json(answer, JsonForm::kForgiving).dump() + "\n";
    if (send(channel, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size())) return;
  }
}

void serve_evidence(int channel, const Said& said) {
  std::string line;
  for (char byte = 0; recv(channel, &byte, 1, 0) == 1 && byte != '\n';) line += byte;
  const std::string answer = said.evidence(line);
  if (answer == "end") return;
  if (!answer.empty()) (void)!send(channel, (answer + "\n").data(), answer.size() + 1, MSG_NOSIGNAL);
  for (char byte = 0; recv(channel, &byte, 1, 0) == 1;) {
  }
}

std::string processes_answer(std::vector<hang::RankFacts> ranks) {
  hang::EvidenceAnswer answer;
  answer.facts.ranks = std::move(ranks);
  answer.lines = {"rank 0 sleeps"};
  return write_json(answer, JsonForm::kExact).dump();
}

// A job of two workers on this node, whose evidence is collected once.
struct Node {
  net::Loop loop;
  net::SideThread files;
  Said said = {.stack = [](int pid) { return pid == kOne ? "all_reduce" : "load_batch"; },
               .evidence =
                   [](const std::string&) {
                     return processes_answer({{.rank = 2, .pid = kOne, .state = hang::ThreadState::kSleeps},
                                              {.rank = 3, .pid = kTwo, .state = hang::ThreadState::kRuns}});
                   }};
  std::optional<store::StoreView> view = {};
  EvidenceOrder order = {
      .round = 4,
      .collection = 2,
      .node = "gpu/1",
      .world_size = 4,
      .workers = {{.rank = 2, .local_rank = 0, .pid = kOne}, {.rank = 3, .local_rank = 1, .pid = kTwo}}};
  EvidenceSettings settings = {.times = {.between_looks_ms = 10}};
  int started = 0, killed = 0;

  EvidenceCollector::Handlers handlers() {
    return {.start = [this](const process::Command& command) -> Result<pid_t> {
              ++started;
              const pid_t child = fork();
              if (child != 0) return child;
              const bool is_evidence = command.arguments.at(1) == evidence::kEvidenceArgument;
              is_evidence ? serve_evidence(command.channel, said) : serve_stacks(command.channel, said);
              _exit(0);
            },
            .kill =
                [this](pid_t reader) {
                  ++killed;
                  kill(reader, SIGKILL);
                  CHECK(waitpid(reader, nullptr, 0) == reader);
                },
            .store = [this](int) { return view; }};
  }

  EvidenceCollector::Collected collected() {
    EvidenceCollector collector(loop, files, settings, handlers());
    net::ReadWatch written(loop, files.done_descriptor(), [this] { files.run_done(); });
    EvidenceCollector::Collected out;
    collector.collect(order, [&](EvidenceCollector::Collected told) {
      out = std::move(told);
      loop.stop();
    });
    CHECK(collector.is_collecting());
    loop.run();
    CHECK(!collector.is_collecting());
    CHECK(started == killed);
    return out;
  }
};

std::string function_of(const hang::NodeFacts& facts, std::size_t rank) {
  const auto place = facts.ranks.at(rank).stack;
  return place ? facts.different_stacks.at(*place).frames.at(0).function : "";
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a node's evidence has its ranks' states and stacks, twice, and what the store says") {
  Node node;
  node.view =
      store::StoreView{.waiting = {{.peer = "127.0.0.1:9", .keys = {"/default_pg/0//cpu//0/3"}}},
                       .init_keys = {"/default_pg/0//cpu//0/0", "/default_pg/0//cpu//0/1", "/default_pg/0//cpu//0/2"}};
  const hang::NodeFacts facts = node.collected().facts;
  CHECK(facts.name == "gpu/1");
  CHECK(facts.has_answered);
  CHECK(facts.own_ranks.text() == "2-3");
  REQUIRE(facts.ranks.size() == 2);
  CHECK(facts.ranks[0].state == hang::ThreadState::kSleeps);
  CHECK(facts.ranks[1].state == hang::ThreadState::kRuns);
  CHECK(facts.stacks.state == hang::Source::kHad);
  CHECK(function_of(facts, 0) == "all_reduce");
  CHECK(function_of(facts, 1) == "load_batch");
  CHECK(facts.ranks[0].stack_then == facts.ranks[0].stack);
  REQUIRE(facts.store.has_value());
  CHECK(facts.store->absent.text() == "3");
  CHECK(facts.store->waiting.text() == "0-2");
  CHECK(facts.store_source.state == hang::Source::kHad);
}

TEST_CASE("clients that wait in the store are ranks where their connections are known, and nobody's otherwise") {
  Node node;
  node.view =
      store::StoreView{.waiting = {{.peer = "127.0.0.1:9", .keys = {"0"}}, {.peer = "10.0.0.2:7", .keys = {"0"}}}};
  node.said.evidence = [](const std::string& line) {
    const bool asks = line.find("store clients") != std::string::npos && line.find("127.0.0.1:9") != std::string::npos;
    hang::EvidenceAnswer answer;
    if (asks) answer.clients = {{.peer = "127.0.0.1:9", .rank = 3}};
    return write_json(answer, JsonForm::kExact).dump();
  };
  const hang::NodeFacts facts = node.collected().facts;
  REQUIRE(facts.store.has_value());
  REQUIRE(facts.store->waits.size() == 1);
  CHECK(facts.store->waits[0] == hang::StoreWait{.key = "0", .ranks = hang::RankRuns::of({3}), .clients = 2});
}

TEST_CASE("a part that does not answer, ends or makes no sense costs that part alone") {
  for (const std::string_view answer : {"", "end", "{}", "no JSON"}) {
    Node node;
    node.settings.times.of_part_ms = answer.empty() ? 50 : 60'000;
    node.said.evidence = [&](const std::string&) { return std::string(answer); };
    const hang::NodeFacts facts = node.collected().facts;
    CHECK(facts.ranks.at(0).state == hang::ThreadState::kUnknown);
    CHECK(facts.ranks.at(0).pid == kOne);
    CHECK(function_of(facts, 0) == "all_reduce");
    CHECK(!facts.store.has_value());
    CHECK(facts.store_source.state == hang::Source::kNotAsked);
  }
}

TEST_CASE("stacks that have not come when the time is over are late, and the ranks are told without them") {
  Node node;
  node.settings.times.reading_ms = 300;
  node.said.stack = [](int) { return ""; };
  const hang::NodeFacts facts = node.collected().facts;
  CHECK(facts.stacks.state == hang::Source::kLate);
  CHECK(facts.own_ranks.text() == "2-3");
  CHECK(!facts.ranks.at(1).stack);
}

TEST_CASE("a process that cannot be started is told, and nothing is waited for") {
  Node node;
  EvidenceCollector::Handlers handlers = node.handlers();
  handlers.start = [](const process::Command&) -> Result<pid_t> { return fail("a reader", "no memory", ""); };
  EvidenceCollector collector(node.loop, node.files, node.settings, handlers);
  hang::NodeFacts facts;
  collector.collect(node.order, [&](const EvidenceCollector::Collected& told) {
    facts = told.facts;
    node.loop.stop();
  });
  node.loop.run();
  CHECK(facts.stacks.state == hang::Source::kRefused);
  CHECK(facts.stacks.why.find("no memory") != std::string::npos);
}

TEST_CASE("a collection that is stopped calls nobody and leaves no process, and the next one is told alone") {
  Node node;
  node.settings.times.reading_ms = 60'000;
  const auto answers = std::exchange(node.said.stack, [](int) { return ""; });
  EvidenceCollector collector(node.loop, node.files, node.settings, node.handlers());
  collector.collect(node.order, [](const EvidenceCollector::Collected&) { FAIL("it was stopped"); });
  net::Timer timer(node.loop);
  timer.start(20, [&] {
    node.said.stack = answers;
    collector.stop();
    CHECK(!collector.is_collecting());
    CHECK(node.started > 0);
    CHECK(node.started == node.killed);
    collector.collect(node.order, [](const EvidenceCollector::Collected&) { FAIL("it was replaced"); });
    collector.collect(node.order, [&](const EvidenceCollector::Collected&) { node.loop.stop(); });
  });
  node.loop.run();
  CHECK(node.started == node.killed);
}

TEST_CASE("the files have the stacks for people and all as JSON, and are there when the facts are told") {
  char place[] = "/tmp/evidence_XXXXXX";
  REQUIRE(mkdtemp(place) != nullptr);
  Node node;
  node.order.directory = std::string(place) + "/hang";
  const std::vector<std::string> files = node.collected().files;
  REQUIRE(files == std::vector{node.order.directory + "/gpu_1_round_4_2_stacks.txt",
                               node.order.directory + "/gpu_1_round_4_2_evidence.json"});
  CHECK(text_of(files[0]).find("load_batch  train.py:7") != std::string::npos);
  CHECK(text_of(files[0]).find("processes: rank 0 sleeps") != std::string::npos);
  const auto json = Json::parse(text_of(files[1]), "a file");
  REQUIRE(json.has_value());
  CHECK(json->text_or_empty("node") == "gpu/1");
  CHECK(json->find("round")->as_integer() == 4);
  CHECK(json->find("facts")->find("ranks")->as_array()->size() == 2);
  CHECK(json->find("stacks")->find("groups")->as_array()->size() == 2);
  std::filesystem::remove_all(place);
}

TEST_CASE("dumps that were asked for are read alone, with no look at stacks, into a file of their own") {
  char place[] = "/tmp/evidence_XXXXXX";
  REQUIRE(mkdtemp(place) != nullptr);
  Node node;
  node.order.directory = std::string(place) + "/hang";
  node.order.dumps_least_ms = 1'500;
  node.said.evidence = [](const std::string& line) {
    hang::EvidenceAnswer answer;
    const auto task = Json::parse(line, "a task");
    if (!task || task->text_or_empty("part") != "dumps" || task->find("least_ms")->as_integer() != 1'500) return "end"s;
    answer.facts.ranks = {{.rank = 2, .recorder = {hang::Source::kHad}},
                          {.rank = 3, .recorder = {hang::Source::kLate, "no dump"}}};
    answer.lines = {"rank 2: all_reduce"};
    return write_json(answer, JsonForm::kExact).dump();
  };
  const EvidenceCollector::Collected collected = node.collected();
  CHECK(node.started == 1);
  CHECK(collected.facts.ranks.at(0).recorder.state == hang::Source::kHad);
  CHECK(collected.facts.ranks.at(1).recorder.why == "no dump");
  REQUIRE(collected.files == std::vector{node.order.directory + "/gpu_1_round_4_2_dumps.json"});
  CHECK(text_of(collected.files[0]).find("dumps: rank 2: all_reduce") != std::string::npos);
  // A node without workers waits for the others, and has nothing to write.
  node.order.workers.clear();
  CHECK(node.collected().files.empty());
  std::filesystem::remove_all(place);
}

TEST_CASE("a directory that cannot be made keeps the facts from nobody") {
  Node node;
  node.order.directory = "/proc/no/such/place";
  CHECK(node.collected().facts.ranks.size() == 2);
}
