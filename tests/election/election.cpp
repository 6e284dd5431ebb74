#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/election/model.h"
#ifdef ELASTIC_RUN_MUTANTS
#include "tests/simulation/mutant.h"
#endif

// Runs the model of elections with one seed after the other. It exits with 1 at the first seed that breaks a rule.
//   election --count N [--from SEED]     300 seeds from 1 on, unless they are given
//   election --trace SEED                what happens with one seed, in words
//   election_mutants --mutant LETTER     with a mistake of tests/mistakes.py
int main(int argc, char** argv) {
  using elastic::election::run_model;
  using elastic::election::Seen;
  std::uint64_t from = 1;
  std::uint64_t count = 300;
  elastic::election::Trace trace = nullptr;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
#ifdef ELASTIC_RUN_MUTANTS
    if (option == "--mutant") elastic::mutant::active = argv[i + 1][0];
#endif
    if (option == "--count") count = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--from" || option == "--trace") from = std::strtoull(argv[i + 1], nullptr, 10);
    if (option != "--trace") continue;
    count = 1;
    trace = [](const std::string& line) { std::puts(line.c_str()); };
  }
  Seen all;
  for (std::uint64_t seed = from; seed < from + count; ++seed) {
    const Seen seen = run_model(seed, trace);
    if (!seen.broken.empty()) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), seen.broken.c_str());
      return 1;
    }
    all.elections += seen.elections;
    all.by_witnessed_death += seen.by_witnessed_death;
    all.rounds += seen.rounds;
    all.kept_for_ever += seen.kept_for_ever;
    all.resignations += seen.resignations;
    all.acting_ms += seen.acting_ms;
    all.total_ms += seen.total_ms;
  }
  std::printf(
      "%llu seeds: %d elections (%d by certificate), %d rounds, %d promises kept for ever, %d resignations, authority "
      "for %lld of %lld s\n",
      static_cast<unsigned long long>(count), all.elections, all.by_witnessed_death, all.rounds, all.kept_for_ever,
      all.resignations, static_cast<long long>(all.acting_ms / 1000), static_cast<long long>(all.total_ms / 1000));
  return 0;
}
