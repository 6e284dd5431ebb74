#include "tests/simulation/runs.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "src/base/text.h"

namespace elastic::simulation {

namespace {

// How many seeds are run between two checks of the limits.
constexpr std::uint64_t kBatch = 4000;
constexpr std::size_t kFailuresKept = 20;

std::uint64_t mixed(std::uint64_t seed, std::uint64_t hash) {
  Random random(seed ^ hash);
  return random.next();
}

void replay_seed(std::uint64_t seed, Totals& totals) {
  const auto recordings = record_seed(seed);
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    const auto found = difference(recordings[i], format("recording {}", i + 1));
    if (found && totals.failed.size() < kFailuresKept)
      totals.failed.push_back({seed, "a recording is decided again alike", *found});
    totals.events += recordings[i].after.size();
  }
  totals.recordings += recordings.size();
}

void run_part(const Wanted& wanted, std::uint64_t from, std::uint64_t to, std::uint64_t step, Totals& totals) {
  for (std::uint64_t seed = from; seed < to; seed += step) {
    if (wanted.replay) {
      replay_seed(seed, totals);
      continue;
    }
    const SimulationOutcome outcome = run_seed(seed, totals.coverage, nullptr);
    totals.hash += mixed(seed, outcome.hash);
    if (outcome.broken && totals.failed.size() < kFailuresKept)
      totals.failed.push_back({seed, outcome.broken->what, outcome.broken->text});
  }
}

// What a process sends to its parent: numbers, then lines.
std::string written(const Totals& totals) {
  std::ostringstream out;
  const std::vector<std::uint64_t> numbers = totals.coverage.numbers();
  out << totals.hash << ' ' << totals.recordings << ' ' << totals.events << ' ' << numbers.size();
  for (const std::uint64_t number : numbers) out << ' ' << number;
  out << '\n';
  for (const FailedSeed& failed : totals.failed)
    out << failed.seed << '\n' << failed.what << '\n' << failed.text << '\n';
  return out.str();
}

bool read_into(const std::string& text, Totals& totals) {
  std::istringstream in(text);
  std::uint64_t hash = 0;
  std::size_t size = 0;
  std::uint64_t recordings = 0;
  std::uint64_t events = 0;
  if (!(in >> hash >> recordings >> events >> size) || size > 10'000) return false;
  std::vector<std::uint64_t> numbers(size);
  for (std::uint64_t& number : numbers) in >> number;
  if (!in) return false;
  totals.hash += hash;
  totals.recordings += recordings;
  totals.events += events;
  totals.coverage.add(numbers);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    FailedSeed failed;
    failed.seed = std::strtoull(line.c_str(), nullptr, 10);
    std::getline(in, failed.what);
    std::getline(in, failed.text);
    totals.failed.push_back(std::move(failed));
  }
  return true;
}

struct Child {
  pid_t pid = -1;
  int from_it = -1;
};

Child begin_part(const Wanted& wanted, std::uint64_t from, std::uint64_t to, std::uint64_t step) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    Totals part;
    run_part(wanted, from, to, step, part);
    const std::string text = written(part);
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t count = write(ends[1], text.data() + at, text.size() - at);
      if (count <= 0) _exit(1);
      at += static_cast<std::size_t>(count);
    }
    _exit(0);
  }
  close(ends[1]);
  return {pid, ends[0]};
}

void end_part(const Child& child, Totals& totals) {
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t count = read(child.from_it, buffer, sizeof buffer);
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  close(child.from_it);
  int status = 0;
  if (child.pid > 0) waitpid(child.pid, &status, 0);
  if (child.pid <= 0 || status != 0 || !read_into(text, totals)) {
    totals.failed.push_back(
        {0, "a process of the simulator has died", format("wait status {}; --jobs 1 shows the seed", status)});
  }
}

}  // namespace

SimulationOutcome run_seed(std::uint64_t seed, Coverage& coverage, std::ostream* reader,
                           const std::optional<FaultPlan>& plan) {
  const Setup setup = setup_of(seed);
  Simulation simulation(setup, plan ? *plan : plan_of(setup), coverage, reader);
  SimulationOutcome outcome = simulation.run();
  coverage.seed_is_over(static_cast<int>(simulation.workers().worlds().size()), simulation.hangs().counts());
  return outcome;
}

std::vector<Recording> record_seed(std::uint64_t seed) {
  const Setup setup = setup_of(seed);
  Coverage ignored;
  Simulation simulation(setup, plan_of(setup), ignored, nullptr);
  simulation.record();
  (void)simulation.run();
  return simulation.recorder()->recordings();
}

Totals run_seeds(const Wanted& wanted, int jobs, std::ostream* progress) {
  const auto began = std::chrono::steady_clock::now();
  Totals totals;
  totals.next_seed = wanted.from;
  const std::uint64_t end = wanted.seeds > 0 ? wanted.from + wanted.seeds : ~0ULL;
  while (totals.next_seed < end) {
    if (wanted.first_failure && !totals.failed.empty()) break;
    if (wanted.faulty_rounds > 0 && totals.coverage.faulty_rounds() >= wanted.faulty_rounds) break;
    if (wanted.seconds > 0 && std::chrono::steady_clock::now() - began >= std::chrono::seconds(wanted.seconds)) break;
    const std::uint64_t from = totals.next_seed;
    const std::uint64_t to = end - from > kBatch ? from + kBatch : end;
    if (jobs <= 1) {
      run_part(wanted, from, to, 1, totals);
    } else {
      std::vector<Child> children;
      const auto step = static_cast<std::uint64_t>(jobs);
      for (std::uint64_t i = 0; i < step; ++i) children.push_back(begin_part(wanted, from + i, to, step));
      for (const Child& child : children) end_part(child, totals);
    }
    totals.next_seed = to;
    if (progress != nullptr)
      *progress << format("to seed {}: {} faulty rounds\n", to - 1, totals.coverage.faulty_rounds()) << std::flush;
  }
  std::ranges::sort(totals.failed, {}, &FailedSeed::seed);
  return totals;
}

std::optional<Shrunk> shrink(std::uint64_t seed) {
  Coverage ignored;
  const FaultPlan whole = plan_of(setup_of(seed));
  const SimulationOutcome first = run_seed(seed, ignored, nullptr, whole);
  if (!first.broken) return {};
  Shrunk shrunk{whole, *first.broken, 1};
  const auto still_fails = [&](const FaultPlan& plan) {
    ++shrunk.tries;
    const SimulationOutcome outcome = run_seed(seed, ignored, nullptr, plan);
    if (!outcome.broken || outcome.broken->what != first.broken->what) return false;
    shrunk.plan = plan;
    shrunk.broken = *outcome.broken;
    return true;
  };
  // Faults are removed one by one while the seed still fails; then the others are made as short and simple as possible.
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::size_t i = shrunk.plan.faults.size(); i-- > 0;) {
      FaultPlan plan = shrunk.plan;
      plan.faults.erase(plan.faults.begin() + static_cast<std::ptrdiff_t>(i));
      smaller = still_fails(plan) || smaller;
    }
  }
  for (std::size_t i = 0; i < shrunk.plan.faults.size(); ++i) {
    FaultPlan plan = shrunk.plan;
    plan.faults[i].delay_ms = 0;
    if (shrunk.plan.faults[i].delay_ms > 0) still_fails(plan);
    for (int halves = 0; halves < 8; ++halves) {
      plan = shrunk.plan;
      plan.faults[i].lasts_ms /= 2;
      if (plan.faults[i].lasts_ms == 0 || !still_fails(plan)) break;
    }
  }
  return shrunk;
}

}  // namespace elastic::simulation
