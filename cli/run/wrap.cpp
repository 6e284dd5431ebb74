#include "cli/run/wrap.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/base/text.h"

namespace elastic::run {
namespace {

std::string expand(const std::string& text, const WrappedWorker& worker) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'r': out += format("{}", worker.rank); break;
      case 'l': out += format("{}", worker.local_rank); break;
      case 'n': out += format("{}", worker.node_rank); break;
      case 'a': out += format("{}", worker.restart_count); break;
      case 'j': out += worker.job; break;
      case '%': out += '%'; break;
      default: out += {'%', text[i]};
    }
  }
  return out;
}

// The first rule that names the rank; null: none.
const WrapRule* rule_of(std::span<const WrapRule> rules, int rank) {
  const auto names = [rank](const WrapRule& rule) {
    return rule.ranks.empty() || std::ranges::any_of(rule.ranks, [rank](const WrapRule::Ranks& range) {
             return range.first <= rank && rank <= range.last;
           });
  };
  const auto found = std::ranges::find_if(rules, names);
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace

WorkerCommand wrapped(std::span<const WrapRule> rules, const WrappedWorker& worker, WorkerCommand own) {
  const WrapRule* rule = rule_of(rules, worker.rank);
  if (rule == nullptr) return own;
  WorkerCommand out{.program = rule->program, .arguments = {}};
  out.arguments.reserve(rule->arguments.size() + own.arguments.size());
  for (const std::string& argument : rule->arguments) out.arguments.push_back(expand(argument, worker));
  out.arguments.push_back(std::move(own.program));
  if (!own.arguments.empty()) {
    std::move(own.arguments.begin() + 1, own.arguments.end(), std::back_inserter(out.arguments));
  }
  return out;
}

std::optional<int> rank_outside(std::span<const WrapRule> rules, int world_size) {
  for (const WrapRule& rule : rules) {
    for (const WrapRule::Ranks& range : rule.ranks) {
      if (range.last >= world_size) return std::max(range.first, world_size);
    }
  }
  return {};
}

}  // namespace elastic::run
