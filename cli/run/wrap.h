#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

// --wrap puts a command before the worker's own on chosen ranks.
namespace elastic::run {

struct WrapRule {
  struct Ranks {
    int first = 0;
    int last = 0;  // included
  };
  std::vector<Ranks> ranks = {};            // global ranks; empty: all
  std::string program = {};                 // the file that is executed
  std::vector<std::string> arguments = {};  // argv[0] first; %r and so on are not replaced yet
};

// The worker that is wrapped.
struct WrappedWorker {
  int rank = 0;
  int local_rank = 0;
  int node_rank = 0;
  int restart_count = 0;
  std::string job = {};
};

struct WorkerCommand {
  std::string program = {};                 // the file that is executed
  std::vector<std::string> arguments = {};  // argv[0] first
};

// Applies the first rule that names the worker's rank; the command stays unchanged if no rule does. The result is the
// rule's argv, with %r (rank), %l (local rank), %n (node rank), %a (restart count), %j (job id) and %% replaced,
// followed by the worker's file and its arguments without argv[0].
WorkerCommand wrapped(std::span<const WrapRule> rules, const WrappedWorker& worker, WorkerCommand own);

// The first rank that a rule names although a world of that size does not have it.
std::optional<int> rank_outside(std::span<const WrapRule> rules, int world_size);

}  // namespace elastic::run
