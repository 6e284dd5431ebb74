#include "cli/output_plan.h"

#include <algorithm>
#include <vector>

#include "src/base/text.h"

namespace elastic::cli {
namespace {

struct Group {
  std::string place;
  std::string ranks;  // "0-2, 5"
  std::size_t last = 0;
  bool is_run = false;  // the last part of `ranks` is "first-last"
};

std::string place_of(const output::OutputFlags& flags, unsigned stream, bool has_files) {
  if (!has_files) return "console";
  const bool teed = (flags.tee & stream) != 0;
  const bool logged = teed || (flags.redirects & stream) != 0;
  if (logged) return teed && flags.shown ? "log file and console" : "log file";
  return flags.shown ? "console" : "nowhere (--local-ranks-filter)";
}

void add(Group& group, std::size_t rank) {
  if (rank == group.last + 1) {
    if (group.is_run) group.ranks.resize(group.ranks.rfind('-'));
    group.ranks += format("-{}", rank);
    group.is_run = true;
  } else {
    group.ranks += format(", {}", rank);
    group.is_run = false;
  }
  group.last = rank;
}

}  // namespace

std::string where_it_goes(std::span<const output::OutputFlags> ranks, unsigned stream, bool has_files) {
  std::vector<Group> groups;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::string place = place_of(ranks[rank], stream, has_files);
    const auto found = std::ranges::find(groups, place, &Group::place);
    if (found == groups.end()) {
      groups.push_back({.place = std::move(place), .ranks = format("{}", rank), .last = rank});
    } else {
      add(*found, rank);
    }
  }
  if (groups.size() == 1) return groups.front().place;
  std::vector<std::string> parts;
  for (const Group& group : groups) parts.push_back(format("{}: {}", group.ranks, group.place));
  return "local ranks " + join(parts, "; ");
}

}  // namespace elastic::cli
