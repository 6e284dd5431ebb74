// Simulates jobs by their seeds.
#include <sodium/core.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>

#ifdef ELASTIC_RUN_MUTANTS
#include "tests/simulation/mutant.h"
#endif
#include "rendezvous/trace/replay.h"
#include "src/base/text.h"
#include "tests/simulation/runs.h"

using namespace elastic;
using namespace elastic::simulation;

namespace {

constexpr const char* kHelp = R"(usage: simulate [OPTION ...]

  --seed N            begin with this seed (1)
  --count M           so many seeds (1; with --faulty-rounds or --seconds no limit)
  --faulty-rounds N   until so many rounds were struck in a transition
  --seconds S         for so long
  --jobs J            in so many processes (as many as there are processors)
  --trace             print what happens with --seed
  --shrink            look for the fewest faults with which --seed fails, and print that run
  --table             print faults by the states that they met; an empty cell without a reason is a failure
  --record FILE       write what the coordinators of --seed were told, as elastic-run --record does: FILE, FILE.2,
                      ...; print to whom each of them said what
  --replay            replay the recordings of each simulation, and hold them to what its coordinators did
  --hash              print a hash of all that happened
  --check-hash FILE   seeds 1 to 1,000 against their hash in a file; --write-hash FILE writes it
  --progress          a line each few thousand seeds
  --mutant X          with a mistake, a to v (simulate_mutants only)

The same seed gives the same simulation, always. Exit status: 0 nothing broken, 1 something is, 2 bad option.
)";

struct Options {
  Wanted wanted;
  bool has_count = false;
  int jobs = 0;
  bool trace = false;
  bool shrink = false;
  bool table = false;
  bool hash = false;
  bool progress = false;
  std::string record;
  std::string check_hash;
  std::string write_hash;
  char mutant = 0;
};

[[noreturn]] void refuse(const std::string& why) {
  std::cerr << "simulate: error: " << why << "; --help lists the options\n";
  std::exit(2);
}

std::uint64_t number(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') refuse(format("{} {}: not a number", option, text));
  return value;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto value = [&]() -> std::string {
      if (++i >= argc) refuse(option + " needs a value");
      return argv[i];
    };
    if (option == "--seed" || option == "--from")
      options.wanted.from = number(option, value());
    else if (option == "--count")
      options.wanted.seeds = number(option, value()), options.has_count = true;
    else if (option == "--faulty-rounds")
      options.wanted.faulty_rounds = number(option, value());
    else if (option == "--seconds")
      options.wanted.seconds = static_cast<std::int64_t>(number(option, value()));
    else if (option == "--jobs")
      options.jobs = static_cast<int>(number(option, value()));
    else if (option == "--trace")
      options.trace = true;
    else if (option == "--shrink")
      options.shrink = true;
    else if (option == "--table")
      options.table = true;
    else if (option == "--record")
      options.record = value();
    else if (option == "--replay")
      options.wanted.replay = true;
    else if (option == "--hash")
      options.hash = true;
    else if (option == "--progress")
      options.progress = true;
    else if (option == "--check-hash")
      options.check_hash = value();
    else if (option == "--write-hash")
      options.write_hash = value();
    else if (option == "--mutant")
      options.mutant = value()[0];
    else if (option == "--help")
      std::cout << kHelp, std::exit(0);
    else
      refuse(option + ": no such option");
  }
  const bool other_end = options.wanted.faulty_rounds > 0 || options.wanted.seconds > 0;
  if (!options.has_count && !other_end) options.wanted.seeds = 1;
  if (options.jobs == 0) options.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (options.wanted.seeds > 0 && options.wanted.seeds < 100) options.jobs = 1;
  return options;
}

std::string replay(std::string_view program, const Options& options, std::uint64_t seed) {
  const std::string mutant = options.mutant != 0 ? format(" --mutant {}", options.mutant) : "";
  return format("{} --seed {}{} --trace", program, seed, mutant);
}

int print_trace(const Options& options, const std::optional<FaultPlan>& shrunk) {
  const Setup setup = setup_of(options.wanted.from);
  const FaultPlan plan = shrunk ? *shrunk : plan_of(setup);
  std::cout << text(setup) << '\n';
  for (const NodeSetup& node : setup.nodes) {
    std::cout << format("  {} {}: {} workers{}, from {} ms, clock {}/10000\n", node.job, node.address, node.workers,
                        node.claimed_rank ? format(", claims rank {}", *node.claimed_rank) : "", node.starts_ms,
                        node.clock_error);
  }
  std::cout << plan.faults.size() << " faults:\n";
  for (const Fault& fault : plan.faults) std::cout << "  " << text(fault) << '\n';
  Coverage coverage;
  const SimulationOutcome outcome = run_seed(options.wanted.from, coverage, &std::cout, plan);
  std::cout << format("hash {:016x}, {} events, {} ms\n", outcome.hash, outcome.steps, outcome.ended_ms);
  return outcome.broken ? 1 : 0;
}

int shrink_and_print(const Options& options) {
  const auto shrunk = shrink(options.wanted.from);
  if (!shrunk) {
    std::cout << format("seed {} does not fail\n", options.wanted.from);
    return 0;
  }
  (void)print_trace(options, shrunk->plan);
  std::cout << format("seed {} fails with {} of {} faults ({} runs tried): {}: {}\n", options.wanted.from,
                      shrunk->plan.faults.size(), plan_of(setup_of(options.wanted.from)).faults.size(), shrunk->tries,
                      shrunk->broken.what, shrunk->broken.text);
  for (const Fault& fault : shrunk->plan.faults) std::cout << "  " << text(fault) << '\n';
  return 1;
}

int record(const Options& options) {
  const auto recordings = record_seed(options.wanted.from);
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    const std::string file = i == 0 ? options.record : format("{}.{}", options.record, i + 1);
    std::ofstream out(file);
    out << recordings[i].text;
    if (!out.flush()) refuse(format("--record {}: it cannot be written", file));
    std::cout << format("{}: job {}, term {}, {} events{}\n", file, recordings[i].job, recordings[i].term,
                        recordings[i].after.size(), recordings[i].was_killed ? ", killed" : "");
    const coordinator::Effects sent{recordings[i].sent.begin(), recordings[i].sent.end()};
    std::cout << "    " << trace::told_in(sent).dump() << '\n';
  }
  return 0;
}

constexpr std::uint64_t kHashedSeeds = 1000;

int check_or_write_hash(const Options& options) {
  const Totals totals = run_seeds({.from = 1, .seeds = kHashedSeeds}, options.jobs, nullptr);
  const std::string now = format("{:016x}", totals.hash);
  if (!options.write_hash.empty()) {
    std::ofstream out(options.write_hash);
    out << now << '\n';
    return out.flush() ? 0 : 2;
  }
  std::ifstream in(options.check_hash);
  std::string known;
  std::getline(in, known);
  if (now == known) return 0;
  std::cout << format(
      "seeds 1 to {}: {} has the hash \"{}\" and this build \"{}\".\nEither this build does not do what another does "
      "with the same seed (--hash with --from and --count finds it), or what the product does was changed: then "
      "simulate "
      "--write-hash FILE.\n",
      kHashedSeeds, options.check_hash, known, now);
  return 1;
}

int run(const Options& options, std::string_view program) {
  const Totals totals = run_seeds(options.wanted, options.jobs, options.progress ? &std::cerr : nullptr);
  if (options.table) std::cout << totals.coverage.table();
  if (options.hash)
    std::cout << format("seeds {} to {}: {:016x}\n", options.wanted.from, totals.next_seed - 1, totals.hash);
  for (const FailedSeed& failed : totals.failed) {
    std::cout << format("seed {}: {}: {}\n  {}\n", failed.seed, failed.what, failed.text,
                        replay(program, options, failed.seed));
  }
  if (!totals.failed.empty()) return 1;
  if (options.wanted.replay) {
    std::cout << format("seeds {} to {}: {} recordings of {} events are decided again alike\n", options.wanted.from,
                        totals.next_seed - 1, totals.recordings, totals.events);
    return 0;
  }
  if (options.table && !totals.coverage.unexplained().empty()) {
    std::cout << "these cells are empty and nothing says why: " << totals.coverage.unexplained() << '\n';
    return 1;
  }
  std::cout << format("seeds {} to {}: {} faulty rounds, nothing is broken\n", options.wanted.from,
                      totals.next_seed - 1, totals.coverage.faulty_rounds());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  // This chooses faster code for the hashes that each session computes. Their values do not depend on it.
  if (sodium_init() < 0) std::cerr << "simulate: libsodium cannot choose its fastest code\n";
  if (options.mutant != 0) {
#ifdef ELASTIC_RUN_MUTANTS
    mutant::active = options.mutant;
#else
    refuse("--mutant: this program has none, simulate_mutants has");
#endif
  }
  if (!options.check_hash.empty() || !options.write_hash.empty()) return check_or_write_hash(options);
  if (!options.record.empty()) return record(options);
  if (options.shrink) return shrink_and_print(options);
  if (options.trace) return print_trace(options, {});
  return run(options, argv[0]);
}
