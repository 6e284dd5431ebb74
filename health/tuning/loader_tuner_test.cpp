#include "health/tuning/loader_tuner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

using namespace elastic::tuning;

namespace {

using What = Note::What;
constexpr std::uint64_t kPlenty = std::uint64_t{64} << 30;

// A job whose loader reads the file before each batch; its time is virtual.
struct Job {
  explicit Job(int cpus = 16) : tuner(cpus) {}

  LoaderTuner tuner;
  ParalConfig file;
  std::int64_t workers = 1;
  std::int64_t batch = 32;
  bool says_workers = true;
  bool says_batch = false;
  bool reads = true;
  bool makes_steps = true;
  bool is_garbage = false;  // the file
  std::function<double(double workers, double batch)> seconds = [](double, double) { return 0.1; };
  double noise = 0;  // the part by which a step may take longer or shorter
  std::uint64_t free_bytes = kPlenty;
  std::function<std::uint64_t(std::int64_t workers)> taken = [](std::int64_t) { return 0; };

  std::vector<Note> notes;
  int orders = 0;
  std::int64_t least_workers = 1'000'000;
  std::int64_t least_batch = 1'000'000;

  // A round whose loader begins with its own values.
  void begin(bool may_restart = true) {
    file = {};
    unread = false;
    version = 0;
    take(tuner.begin_round(may_restart, now_ms));
    say();
    read_file();
  }
  // The loader is made: it writes its values over those that are there, as ElasticDataLoader does.
  void say() {
    if (says_workers) file.workers = workers;
    if (says_batch) file.batch = batch;
  }
  void end(bool rank_failed, const std::string& memory = {}) { take(tuner.end_round(rank_failed, memory)); }
  // So many looks, a second each of the virtual time of 20 steps.
  void look(int count = 1) {
    for (int i = 0; i < count; ++i) {
      if (reads) read_file();
      for (int each = 0; makes_steps && each < 20; ++each) make_step();
      now_ms += 1000;
      Look look{.now_ms = now_ms, .was_read = !unread};
      if (!is_garbage) look.file = file;
      look.free_bytes = free_bytes - taken(workers);
      if (makes_steps) look.step = StepSeen{.source = 0, .step = step, .at_ms = static_cast<std::int64_t>(at_ms)};
      take(tuner.weigh_look(look));
    }
  }
  int count(What what) const { return static_cast<int>(std::ranges::count(notes, what, &Note::what)); }
  const Note& last(What what) const {
    const auto found =
        std::find_if(notes.rbegin(), notes.rend(), [what](const Note& note) { return note.what == what; });
    REQUIRE(found != notes.rend());
    return *found;
  }
  // Until there are so many notes of a kind.
  void until(What what, int wanted) {
    for (int i = 0; i < 400 && count(what) < wanted; ++i) look();
    CHECK(count(what) == wanted);
  }
  // Until the search is over.
  void run() { until(What::kEnded, 1); }

 private:
  void take(const LoaderTuner::Effects& effects) {
    notes.insert(notes.end(), effects.notes.begin(), effects.notes.end());
    if (!effects.write) return;
    ++orders;
    const Order& order = *effects.write;
    CHECK(order.version > file.version);
    file.version = order.version;
    if (order.workers) file.workers = order.workers;
    if (order.batch) file.batch = order.batch;
    if (order.optimizer) {
      file.optimizer_version = order.optimizer->version;
      file.learning_rate = order.optimizer->learning_rate;
      file.weight_decay = order.optimizer->weight_decay;
    }
    unread = true;
    is_garbage = false;
  }
  void read_file() {
    if (file.version > version) {
      version = file.version;
      if (file.workers) workers = *file.workers;
      if (file.batch) batch = *file.batch;
    }
    unread = false;
    least_workers = std::min(least_workers, workers);
    least_batch = std::min(least_batch, batch);
  }
  void make_step() {
    ++step;
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    const double part = static_cast<double>(random >> 40) / static_cast<double>(1U << 24) * 2 - 1;  // -1 to 1
    at_ms += seconds(static_cast<double>(workers), static_cast<double>(batch)) * 1000 * (1 + noise * part);
  }

  std::int64_t now_ms = 0;
  std::int64_t step = 0;
  std::int64_t version = 0;
  double at_ms = 0;
  bool unread = false;
  std::uint64_t random = 1;
};

// A batch takes a loader 0.8 s and the model 0.05 s; more loaders than `best` disturb each other.
std::function<double(double, double)> sleeping(double best) {
  return [best](double workers, double) {
    const double helping = std::min(workers, best) * std::pow(0.9, std::max(workers - best, 0.0));
    return std::max(0.8 / helping, 0.05);
  };
}

}  // namespace

TEST_CASE("the best number of loaders is found within five changes, noise or not, and never less than at the start") {
  for (const double noise : {0.0, 0.1}) {
    for (const int best : {1, 2, 4, 8, 16}) {
      for (const int start : {1, 2, 4}) {
        if (start > best) continue;
        CAPTURE(noise);
        CAPTURE(best);
        CAPTURE(start);
        Job job;
        job.workers = start;
        job.noise = noise;
        job.seconds = sleeping(best);
        job.begin();
        job.run();
        CHECK(job.workers == best);
        CHECK(job.count(What::kTried) <= 5);
        CHECK(job.least_workers == start);
        CHECK(job.count(What::kTried) == job.count(What::kKept) + job.count(What::kTakenBack));
      }
    }
  }
}

TEST_CASE("a change is an event with its values and the speed before, and a decision with the speed after") {
  Job job;
  job.seconds = sleeping(2);
  job.begin();
  job.run();
  REQUIRE(job.notes.size() >= 4);
  CHECK(job.notes[0].what == What::kTried);
  CHECK(job.notes[0].value == Value::kWorkers);
  CHECK(job.notes[0].from == 1);
  CHECK(job.notes[0].to == 2);
  CHECK(*job.notes[0].speed_before == doctest::Approx(1.25));
  CHECK(!job.notes[0].speed_after);
  CHECK(job.notes[1].what == What::kKept);
  CHECK(*job.notes[1].speed_before == doctest::Approx(1.25));
  CHECK(*job.notes[1].speed_after == doctest::Approx(2.5));
  CHECK(job.notes[1].text == "num_workers 2 is kept: 2.5 steps/s, 1.25 with 1");
  CHECK(job.notes[3].what == What::kTakenBack);
  CHECK(job.notes[3].from == 4);
  CHECK(job.notes[3].to == 2);
  CHECK(job.last(What::kEnded).speed_before == doctest::Approx(1.25));
  CHECK(job.last(What::kEnded).speed_after == doctest::Approx(2.5));
}

TEST_CASE("a speed that only its noise has raised keeps no change") {
  Job job;
  job.workers = 2;
  job.noise = 0.9;
  job.begin();
  job.run();
  CHECK(job.workers == 2);
  CHECK(job.count(What::kKept) == 0);
}

TEST_CASE("nothing is measured before a worker has read the change, and one line says so") {
  Job job;
  job.seconds = sleeping(4);
  job.begin();
  job.reads = false;
  job.look(280);
  CHECK(job.count(What::kTried) == 1);
  CHECK(job.count(What::kNothing) == 0);
  job.look(400);
  CHECK(job.notes.size() == 2);
  CHECK(job.last(What::kNothing).text == "nothing is changed: num_workers 2 is in the file, and no worker has read it");
  job.reads = true;
  job.run();
  CHECK(job.workers == 4);
}

TEST_CASE("where no loader says its values, or no step is seen, nothing is changed and one line says so") {
  Job job;
  SUBCASE("no values") {
    job.says_workers = false;
    job.begin();
    job.look(1000);
    CHECK(job.last(What::kNothing).text ==
          "nothing is changed: no loader has said its num_workers or its batch_size in the file");
  }
  SUBCASE("no steps") {
    job.makes_steps = false;
    job.begin();
    job.look(1000);
    CHECK(job.last(What::kNothing).text ==
          "nothing is changed: no step is seen by which the speed could be measured (docs/progress.md says what is "
          "seen)");
  }
  SUBCASE("steps whose times do not advance") {
    job.seconds = [](double, double) { return 0.0; };
    job.begin();
    job.look(1000);
    CHECK(
        job.last(What::kNothing).text ==
        "nothing is changed: the steps that are seen are too few, or their times do not advance, to measure the speed");
  }
  CHECK(job.notes.size() == 1);
  CHECK(job.orders == 0);
}

TEST_CASE("of steps that are slow it is not said that they cannot be measured") {
  Job job;
  job.seconds = [](double, double) { return 1.0; };
  job.begin();
  for (int i = 0; i < 5; ++i) {
    job.makes_steps = true;
    job.look();
    job.makes_steps = false;
    job.look(140);
  }
  CHECK(job.notes.empty());
  job.look(200);
  CHECK(job.count(What::kNothing) == 1);
}

TEST_CASE("a batch size is doubled while that makes more samples a second, and the learning rate follows by its root") {
  Job job;
  job.says_workers = false;
  job.says_batch = true;
  job.batch = 16;
  // A step has a cost of its own; from 64 samples on the model is slower.
  job.seconds = [](double, double batch) {
    return 0.5 + 0.001 * batch + (batch > 64 ? 0.01 * (batch - 64) * batch : 0);
  };
  job.begin();
  job.file.learning_rate = 0.01;
  job.file.weight_decay = 0.1;
  job.until(What::kTried, 1);
  job.look(2);
  CHECK(job.batch == 32);
  CHECK(job.file.learning_rate == doctest::Approx(0.01 * std::sqrt(2.0)));
  CHECK(job.file.weight_decay == doctest::Approx(0.1 * std::sqrt(2.0)));
  job.run();
  CHECK(job.batch == 64);
  CHECK(job.least_batch == 16);
  CHECK(job.file.learning_rate == doctest::Approx(0.02));
  CHECK(job.file.optimizer_version >= 3);
  // Restarted, the loader writes its own batch size over it, and the script nothing.
  job.end(false);
  const double rate = job.file.learning_rate;
  job.batch = 16;
  job.begin();
  job.file.learning_rate = rate;
  job.file.weight_decay = 0.2;
  job.look(5);
  CHECK(job.batch == 64);
  CHECK(job.file.learning_rate == doctest::Approx(0.02));
  // Or both their own again.
  job.end(false);
  job.batch = 16;
  job.begin();
  job.file.learning_rate = 0.01;
  job.file.weight_decay = 0.1;
  job.look(5);
  CHECK(job.batch == 64);
  CHECK(job.file.learning_rate == doctest::Approx(0.02));
}

TEST_CASE("a batch size is not raised where its ranks could not be restarted") {
  Job job;
  job.says_workers = false;
  job.says_batch = true;
  job.begin(false);
  job.run();
  CHECK(job.orders == 0);
  CHECK(job.last(What::kEnded).text.find("no restart is left") != std::string::npos);
}

TEST_CASE("a rank that dies while a change is tried takes it back, and no larger value is tried") {
  Job job;
  job.seconds = sleeping(16);
  job.begin();
  job.until(What::kTried, 3);
  job.look(2);
  CHECK(job.workers == 8);
  job.end(true, "host-memory");
  CHECK(job.last(What::kTakenBack).text == "num_workers goes back from 8 to 4: a rank died of memory (host-memory)");
  job.workers = 1;
  job.begin();
  job.run();
  CHECK(job.workers == 4);
  CHECK(job.count(What::kTried) == 3);
}

TEST_CASE("a rank that dies of memory later takes back what was kept last") {
  Job job;
  job.seconds = sleeping(4);
  job.begin();
  job.run();
  CHECK(job.workers == 4);
  job.end(true);  // of something else
  job.workers = 1;
  job.begin();
  job.look(3);
  CHECK(job.workers == 4);
  for (const int left : {2, 1, 1}) {
    job.end(true, "cuda-out-of-memory");
    job.workers = 1;
    job.begin();
    job.look(3);
    CHECK(job.workers == left);
  }
  CHECK(job.least_workers == 1);
}

TEST_CASE("a round that ends without a failure while a change is tried ends the search, and that is said so") {
  Job job;
  job.seconds = sleeping(16);
  job.begin();
  job.until(What::kTried, 2);
  job.look(2);
  CHECK(job.workers == 4);
  job.end(false);
  CHECK(job.last(What::kTakenBack).text == "num_workers goes back from 4 to 2: the round ended");
  job.workers = 1;
  job.begin();
  job.run();
  CHECK(job.workers == 2);
  CHECK(job.last(What::kEnded).text.find("num_workers 2 (the round ended with 4): ") != std::string::npos);
}

TEST_CASE("a change that no worker has read before the round ended is tried again") {
  Job job;
  job.seconds = sleeping(2);
  job.begin();
  job.until(What::kTried, 1);
  job.end(false);
  CHECK(job.count(What::kTakenBack) == 1);
  job.begin();
  job.run();
  CHECK(job.workers == 2);
}

TEST_CASE("a change is not tried if less memory is free than twice what the last one took, or a gibibyte") {
  Job job;
  job.seconds = sleeping(16);
  job.free_bytes = std::uint64_t{20} << 30;
  SUBCASE("by what the last one took") {
    job.taken = [](std::int64_t workers) { return static_cast<std::uint64_t>(workers) << 31; };  // 2 GiB each
    job.begin();
    job.run();
    CHECK(job.workers == 8);  // they took 8 GiB, and 4 are free
    CHECK(job.last(What::kEnded).text.find("of memory are free, and a change needs") != std::string::npos);
  }
  SUBCASE("at first") {
    job.free_bytes = 1000 << 20;
    job.begin();
    job.run();
    CHECK(job.workers == 1);
    CHECK(job.orders == 0);
  }
}

TEST_CASE("a rank gets four loaders for each of its CPUs at most") {
  Job job(1);
  job.seconds = sleeping(16);
  job.begin();
  job.run();
  CHECK(job.workers == 4);
}

TEST_CASE("values that a worker has overwritten are written again, eight times in a round") {
  Job job;
  job.seconds = sleeping(4);
  job.begin();
  job.run();
  const int before = job.orders;
  job.file.workers = 1;
  job.look();
  CHECK(job.file.workers == 4);
  CHECK(job.orders == before + 1);
  for (int i = 0; i < 20; ++i) {
    job.file.workers = 1;
    job.look();
  }
  CHECK(job.orders == before + 8);
  CHECK(job.last(What::kNothing).text == "nothing is changed: workers have overwritten the file 8 times");
  job.end(false);
  job.begin();
  job.file.workers = 1;
  job.look();
  CHECK(job.file.workers == 4);
}

TEST_CASE("where loaders with different values write the file nothing is changed") {
  Job job;
  job.begin();
  job.look(2);
  job.file.workers = 3;  // that of the evaluation
  job.look(100);
  CHECK(job.orders == 0);
  CHECK(job.last(What::kNothing).text == "nothing is changed: several loaders write different values to the file");
}

TEST_CASE("a value that is taken back and overwritten before a worker has read it is written again") {
  Job job;
  job.seconds = sleeping(1);
  job.begin();
  job.until(What::kTakenBack, 1);
  job.reads = false;
  job.file.workers = 2;  // by a worker that had read the file before
  job.look();
  CHECK(job.file.workers == 1);
  job.reads = true;
  job.run();
  CHECK(job.workers == 1);
  CHECK(job.count(What::kNothing) == 0);
}

TEST_CASE("a file that is none for three looks is written again, and before a change it is not") {
  Job job;
  job.seconds = sleeping(4);
  job.begin();
  job.look(2);
  job.is_garbage = true;
  job.look(4);
  CHECK(job.orders == 0);
  job.is_garbage = false;
  job.run();
  const int before = job.orders;
  job.is_garbage = true;
  job.look(2);
  CHECK(job.orders == before);
  job.look();
  CHECK(job.orders == before + 1);
  CHECK(job.file.workers == 4);
}

TEST_CASE("a later round finds the values that hold from its beginning") {
  Job job;
  job.seconds = sleeping(4);
  job.begin();
  job.run();
  job.end(true);
  job.says_workers = false;
  job.begin();
  CHECK(job.file.workers == 4);
  CHECK(job.workers == 4);
}

TEST_CASE("a speed is of one round") {
  Job job;
  job.begin();
  job.look(7);
  CHECK(job.count(What::kTried) == 0);
  job.end(true);
  job.begin();
  job.look(6);
  CHECK(job.count(What::kTried) == 0);
  job.until(What::kTried, 1);
}
