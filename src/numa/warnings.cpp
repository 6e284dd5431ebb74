#include "src/numa/warnings.h"

#include <algorithm>

#include "src/base/text.h"

namespace elastic::numa {
namespace {

struct Group {
  Warning first;
  std::vector<int> ranks;
};

std::string text_of_group(const Group& group) {
  const bool is_memory = group.first.kind == Warning::Kind::kMemoryNotBound;
  const bool is_other = group.first.kind == Warning::Kind::kOtherCpus;
  return format("the {} of {} {} {} {}: {}", is_memory ? "memory" : "CPUs", plural("local rank", group.ranks.size()),
                rank_ranges(group.ranks), is_memory ? "is" : "are",
                is_other ? "perhaps not those that were asked for" : "not bound", group.first.reason);
}

}  // namespace

std::string text_of(const std::vector<Warning>& warnings) {
  std::vector<Group> groups;
  for (const Warning& warning : warnings) {
    const auto same = std::ranges::find_if(groups, [&](const Group& group) {
      return group.first.kind == warning.kind && group.first.reason == warning.reason;
    });
    if (same == groups.end()) {
      groups.push_back({warning, {warning.local_rank}});
    } else {
      same->ranks.push_back(warning.local_rank);
    }
  }
  std::vector<std::string> texts;
  for (const Group& group : groups) texts.push_back(text_of_group(group));
  return join(texts, "; ");
}

}  // namespace elastic::numa
