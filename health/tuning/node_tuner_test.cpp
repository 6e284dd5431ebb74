#include "health/tuning/node_tuner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <string>

using namespace elastic::tuning;

namespace {

using What = Note::What;
constexpr std::uint64_t kGib = std::uint64_t{1} << 30;

// One node, whose loader reads the file before each batch.
struct Node {
  explicit Node(int cpus = 16) : tuner(cpus) {}

  NodeTuner tuner;
  ParalConfig file;
  std::int64_t own_workers = 1;
  std::int64_t own_batch = 32;
  std::int64_t workers = 1;
  std::int64_t batch = 32;
  std::int64_t least_workers = 1'000'000;
  bool says_workers = true;
  bool says_batch = false;
  bool has_flag = true;
  bool reads = true;
  std::uint64_t free_bytes = 64 * kGib;
  std::function<std::uint64_t(std::int64_t workers)> taken = [](std::int64_t) { return 0; };
  std::vector<Note> notes;
  int words = 0;

  void write(const Order& order) {
    CHECK(order.version > file.version);
    file.version = order.version;
    if (order.workers) file.workers = order.workers;
    if (order.batch) file.batch = order.batch;
    if (order.optimizer) file.learning_rate = order.optimizer->learning_rate;
    unread = true;
  }
  // New workers begin, and their loader writes its own values over those that are there if it says them.
  void start() {
    version = 0;
    workers = own_workers;
    batch = own_batch;
    if (says_workers && !file.workers) file.workers = workers;
    if (says_batch && !file.batch) file.batch = batch;
    read();
  }
  void read() {
    if (!reads) return;
    unread = false;
    if (file.version > version) {
      version = file.version;
      workers = file.workers.value_or(workers);
      batch = file.batch.value_or(batch);
    }
    least_workers = std::min(least_workers, workers);
  }
  std::int64_t version = 0;
  bool unread = false;
};

// A job whose coordinator relays what nodes say. Its steps are those of its slowest node, and its time is virtual.
struct Job {
  explicit Job(std::size_t count) : nodes(count) { ranks_as_they_are(); }

  std::deque<Node> nodes;
  std::vector<Node*> ranks;  // by node rank
  std::function<double(double workers)> seconds = [](double) { return 0.1; };
  bool relays = true;

  void ranks_as_they_are() {
    ranks.clear();
    for (Node& node : nodes) ranks.push_back(&node);
  }
  NodeTuner::Place place(std::size_t rank) const { return {static_cast<int>(rank), static_cast<int>(ranks.size())}; }
  void begin(bool may_restart = true) {
    if (ranks[0]->has_flag) take(0, ranks[0]->tuner.lead_round(place(0), now_ms));
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      Node& node = *ranks[rank];
      node.file = {};
      if (node.has_flag) take(rank, node.tuner.begin_round(place(rank), may_restart, now_ms));
      node.start();
    }
    step = 0;
  }
  // `failed`: the node with a rank that fails; `memory`: the rule by which that is for memory, or empty.
  void end(std::optional<std::size_t> failed = {}, const std::string& memory = {}) {
    if (failed) take(*failed, ranks[*failed]->tuner.rank_failed(memory));
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      if (ranks[rank]->has_flag) take(rank, ranks[rank]->tuner.end_round(failed == rank));
    }
  }
  // So many looks, a second each of the virtual time of 20 steps.
  void look(int count = 1) {
    for (int i = 0; i < count; ++i) {
      double slowest = 0;
      for (Node* node : ranks) {
        node->read();
        slowest = std::max(slowest, seconds(static_cast<double>(node->workers)));
      }
      step += 20;
      at_ms += 20 * slowest * 1000;
      now_ms += 1000;
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        Node& node = *ranks[rank];
        Look look{.now_ms = now_ms, .file = node.file, .was_read = !node.unread};
        look.step = StepSeen{.source = 0, .step = step, .at_ms = static_cast<std::int64_t>(at_ms)};
        look.free_bytes = node.free_bytes - node.taken(node.workers);
        if (node.has_flag) take(rank, node.tuner.weigh_look(look));
      }
    }
  }
  int count(What what) const {
    int found = 0;
    for (const Node& node : nodes) found += static_cast<int>(std::ranges::count(node.notes, what, &Note::what));
    return found;
  }
  void until(What what, int wanted) {
    for (int i = 0; i < 600 && count(what) < wanted; ++i) look();
    REQUIRE(count(what) == wanted);
  }
  const Note& last(What what) const {
    for (const Node& node : nodes) {
      const auto found =
          std::find_if(node.notes.rbegin(), node.notes.rend(), [what](const Note& note) { return note.what == what; });
      if (found != node.notes.rend()) return *found;
    }
    FAIL("there is no such note");
    return nodes[0].notes[0];
  }

 private:
  void take(std::size_t rank, const NodeTuner::Effects& effects) {
    Node& node = *ranks[rank];
    node.notes.insert(node.notes.end(), effects.notes.begin(), effects.notes.end());
    if (effects.write) node.write(*effects.write);
    for (const LoaderWord& word : effects.tell) {
      ++node.words;
      for (std::size_t to = 0; relays && to < ranks.size(); ++to) {
        if ((to == 0) == (rank == 0) || !ranks[to]->has_flag) continue;
        take(to, ranks[to]->tuner.heard(static_cast<int>(rank), word, now_ms));
      }
    }
  }

  std::int64_t now_ms = 0;
  std::int64_t step = 0;
  double at_ms = 0;
};

// A batch takes a loader 0.8 s and the model 0.05 s; more loaders than `best` disturb each other.
std::function<double(double)> sleeping(double best) {
  return [best](double workers) {
    return std::max(0.8 / (std::min(workers, best) * std::pow(0.9, std::max(workers - best, 0.0))), 0.05);
  };
}

}  // namespace

TEST_CASE("the best number of loaders is found for all nodes of a job within five changes, by one of them") {
  for (const std::size_t size : {2U, 3U, 8U}) {
    for (const int best : {1, 2, 4, 8}) {
      CAPTURE(size);
      CAPTURE(best);
      Job job(size);
      job.seconds = sleeping(best);
      job.begin();
      job.until(What::kEnded, 1);
      job.look(3);
      CHECK(job.count(What::kTried) <= 5);
      for (const Node& node : job.nodes) {
        CHECK(node.workers == best);
        CHECK(node.least_workers == 1);
        CHECK(node.file == job.nodes[0].file);
        if (&node != &job.nodes[0]) CHECK(node.notes.empty());
      }
    }
  }
}

TEST_CASE("a change counts only after a worker of each node has read it") {
  Job job(3);
  job.seconds = sleeping(4);
  job.begin();
  job.until(What::kTried, 1);
  job.nodes[2].reads = false;
  job.look(290);
  CHECK(job.count(What::kKept) == 0);
  CHECK(job.nodes[1].workers == 2);
  job.look(20);
  CHECK(job.last(What::kNothing).text ==
        "nothing is changed: num_workers 2 is in the file, and no worker of node 2 has read it");
  job.nodes[2].reads = true;
  job.until(What::kKept, 1);
}

TEST_CASE("while nothing was heard of a node nothing is tried, and one line says so") {
  Job job(2);
  job.seconds = sleeping(4);
  SUBCASE("it was started without the flag") { job.nodes[1].has_flag = false; }
  SUBCASE("its coordinator is older") { job.relays = false; }
  job.begin();
  job.look(400);
  CHECK(job.count(What::kTried) == 0);
  CHECK(job.nodes[0].workers == 1);
  REQUIRE(job.count(What::kNothing) == 1);
  CHECK(job.last(What::kNothing).text ==
        "nothing is changed: nothing was heard of the loaders of node 1, nor of its memory (--auto-tunning has to be "
        "given there, too)");
}

TEST_CASE("a change is not tried if another node has too little memory for it") {
  Job job(3);
  job.seconds = sleeping(16);
  SUBCASE("by what the last one took where it took most") {
    job.nodes[1].free_bytes = 20 * kGib;
    job.nodes[1].taken = [](std::int64_t workers) { return static_cast<std::uint64_t>(workers) * 2 * kGib; };
    job.begin();
    job.until(What::kEnded, 1);
    CHECK(job.nodes[0].workers == 8);  // they took 8 GiB there, and 4 are free
    CHECK(job.last(What::kEnded).text.find("4096 MiB of memory are free on another node, and a change needs 16384") !=
          std::string::npos);
  }
  SUBCASE("at first") {
    job.nodes[2].free_bytes = kGib / 2;
    job.begin();
    job.until(What::kEnded, 1);
    CHECK(job.count(What::kTried) == 0);
  }
}

TEST_CASE("ranks get four loaders for each CPU of the node that has the fewest, also if it comes later") {
  Job job(1);
  job.seconds = sleeping(16);
  SUBCASE("at first") {}
  SUBCASE("later") {
    job.begin();
    job.until(What::kTried, 2);
    job.end();
  }
  job.nodes.emplace_back(1);
  job.ranks_as_they_are();
  job.begin();
  job.until(What::kEnded, 1);
  job.look(3);
  CHECK(job.nodes[0].workers == 4);
  CHECK(job.nodes[1].workers == 4);
}

TEST_CASE("a rank that fails on another node while a change is tried takes it back everywhere") {
  Job job(3);
  job.seconds = sleeping(16);
  job.begin();
  job.until(What::kTried, 2);
  job.look(2);
  CHECK(job.nodes[2].workers == 4);
  SUBCASE("of memory") {
    job.end(2, "host-memory");
    job.begin();
    CHECK(job.last(What::kTakenBack).text == "num_workers goes back from 4 to 2: a rank died of memory (host-memory)");
  }
  SUBCASE("of something else") {
    job.end(2);
    job.begin();
    CHECK(job.last(What::kTakenBack).text == "num_workers goes back from 4 to 2: a rank failed");
  }
  for (const Node& node : job.nodes) CHECK(node.file.workers == 2);  // before their workers start
  job.until(What::kEnded, 1);
  CHECK(job.count(What::kTried) == 2);
}

TEST_CASE("a rank that dies of memory on another node later takes back what was kept last") {
  Job job(2);
  job.seconds = sleeping(4);
  job.begin();
  job.until(What::kEnded, 1);
  job.end(1);  // of something else
  job.begin();
  CHECK(job.nodes[1].file.workers == 4);
  job.end(1, "killed-for-memory");
  job.begin();
  for (const Node& node : job.nodes) CHECK(node.file.workers == 2);
  job.end(1, "killed-for-memory");
  job.begin();
  for (const Node& node : job.nodes) CHECK(node.workers == 1);
}

TEST_CASE("a node that comes to decide goes on from what holds, and can go back to where the search began") {
  Job job(3);
  job.seconds = sleeping(4);
  job.nodes[0].own_workers = job.nodes[1].own_workers = job.nodes[2].own_workers = 2;
  job.begin();
  job.until(What::kTried, 2);
  job.look(2);
  CHECK(job.nodes[1].workers == 8);
  // Its node is lost with what was being tried.
  job.nodes.emplace_back().own_workers = 2;
  job.ranks = {&job.nodes[1], &job.nodes[2], &job.nodes[3]};
  job.nodes[1].tuner.end_round(false);
  job.nodes[2].tuner.end_round(false);
  job.begin();
  for (const Node* node : job.ranks) CHECK(node->file.workers == 4);
  job.until(What::kEnded, 1);
  for (const Node* node : job.ranks) CHECK(node->workers == 4);
  job.end(2, "host-memory");
  job.begin();
  for (const Node* node : job.ranks) CHECK(node->workers == 2);
}

TEST_CASE("a node that is new and decides takes up what the others know") {
  Job job(2);
  job.seconds = sleeping(4);
  job.begin();
  job.until(What::kEnded, 1);
  job.end();
  job.nodes.emplace_back();
  job.ranks = {&job.nodes[2], &job.nodes[1]};
  job.begin();
  CHECK(job.nodes[1].workers == 1);  // both begin alike
  job.look(5);
  for (const Node* node : job.ranks) CHECK(node->workers == 4);
  job.until(What::kEnded, 2);
  for (const Node* node : job.ranks) {
    CHECK(node->workers == 4);
    CHECK(node->least_workers == 1);
  }
}

TEST_CASE("a node that is told nothing in a round begins it with what held before, without what was being tried") {
  Job job(2);
  job.seconds = sleeping(8);
  job.begin();
  job.until(What::kTried, 2);
  job.look(2);
  CHECK(job.nodes[1].workers == 4);
  job.end();
  job.nodes.emplace_back().has_flag = false;
  job.ranks = {&job.nodes[2], &job.nodes[1]};
  job.begin();
  CHECK(job.nodes[1].file.workers == 2);
  job.look(100);
  CHECK(job.nodes[1].workers == 2);
}

TEST_CASE("a node that decides no more follows, with what it knew") {
  Job job(2);
  job.seconds = sleeping(4);
  job.begin();
  job.until(What::kTried, 2);
  job.end();
  SUBCASE("one that knew it, too") {
    job.ranks = {&job.nodes[1], &job.nodes[0]};
    job.begin();
    for (const Node* node : job.ranks) CHECK(node->file.workers == 2);
  }
  SUBCASE("one that is new") {
    job.nodes.emplace_back();
    job.ranks = {&job.nodes[2], &job.nodes[0]};
    job.begin();
    job.look(5);
    for (const Node* node : job.ranks) CHECK(node->workers == 2);
  }
  job.until(What::kEnded, 1);
  for (const Node* node : job.ranks) CHECK(node->workers == 4);
}

TEST_CASE("no value is below what the loader of its own node began with") {
  Job job(2);
  job.seconds = sleeping(2);
  job.nodes[1].own_workers = job.nodes[1].workers = 3;
  job.begin();
  job.until(What::kEnded, 1);
  job.look(3);
  CHECK(job.nodes[0].workers == 2);
  CHECK(job.nodes[1].least_workers == 3);
  CHECK(job.nodes[1].workers == 3);
}

TEST_CASE("values that workers of another node overwrite are written again, eight times in a round") {
  Job job(2);
  job.seconds = sleeping(4);
  job.begin();
  job.until(What::kEnded, 1);
  job.look(3);
  for (int i = 0; i < 20; ++i) {
    job.nodes[1].file.workers = 1;
    job.look();
  }
  CHECK(job.nodes[1].file.workers == 1);
  REQUIRE(job.nodes[1].notes.size() == 1);
  CHECK(job.nodes[1].notes[0].text == "nothing is changed: workers have overwritten the file 8 times");
  job.end();
  job.begin();
  job.nodes[1].file.workers = 1;
  job.look();
  CHECK(job.nodes[1].file.workers == 4);
}

TEST_CASE("the learning rate of each node is that of its own script") {
  Job job(2);
  for (Node& node : job.nodes) {
    node.says_workers = false;
    node.says_batch = true;
  }
  job.begin();
  job.nodes[1].file.learning_rate = 0.01;
  job.until(What::kTried, 1);
  job.look(2);
  CHECK(job.nodes[1].batch == 64);
  CHECK(job.nodes[1].file.learning_rate == doctest::Approx(0.01 * std::sqrt(2.0)));
  CHECK(job.nodes[0].file.learning_rate == 0);
}

TEST_CASE("words are few: when memory changes by a tenth, when a change was read, and each half minute") {
  Job job(2);
  job.nodes[0].says_workers = false;  // nothing is tried
  job.begin();
  job.look(1);
  CHECK(job.nodes[1].words == 1);
  job.look(28);
  CHECK(job.nodes[1].words == 1);
  job.look(3);
  CHECK(job.nodes[1].words == 2);
  job.nodes[1].free_bytes -= 3 * kGib;
  job.look(10);
  CHECK(job.nodes[1].words == 2);
  job.nodes[1].free_bytes -= 6 * kGib;
  job.look(1);
  CHECK(job.nodes[1].words == 3);
  job.nodes[1].free_bytes -= 20 * kGib;
  job.look(3);
  CHECK(job.nodes[1].words == 3);
  job.look(2);
  CHECK(job.nodes[1].words == 4);
  CHECK(job.nodes[0].words == 1);  // that nothing holds
}

TEST_CASE("a word that makes no sense changes nothing") {
  NodeTuner node(8);
  node.begin_round({1, 2}, true, 0);
  const auto writes = [&](const ChosenValues& values) {
    node.heard(0, {.values = values}, 0);
    return node.weigh_look({.now_ms = 1000, .file = ParalConfig{.workers = 1}}).write.has_value();
  };
  CHECK(!writes({.version = 1, .workers = ChosenValue{.start = 4, .kept = 4, .now = 2}}));
  CHECK(!writes({.version = 1, .workers = ChosenValue{.start = -1, .kept = 4, .now = 2}}));
  CHECK(!writes({.version = 1, .workers = ChosenValue{.start = 1, .kept = 1, .now = kMostSaid + 1}}));
  CHECK(writes({.version = 1, .workers = ChosenValue{.start = 1, .kept = 1, .now = 2}}));
  OtherNodes others;
  others.begin_round(1);
  others.heard(2, {.free_bytes = 1});
  others.heard(0, {.free_bytes = 1});
  others.heard(1, {.free_bytes = -1});
  others.heard(1, {.free_bytes = 1, .cpus = 0});
  CHECK(others.silent() == 1);
}

TEST_CASE("in a job of one node nothing is told, and how a round has ended is known at once") {
  Job job(1);
  job.seconds = sleeping(4);
  job.begin();
  job.until(What::kTried, 1);
  job.end(0, "host-memory");
  CHECK(job.last(What::kTakenBack).text == "num_workers goes back from 2 to 1: a rank died of memory (host-memory)");
  CHECK(job.nodes[0].words == 0);
}
