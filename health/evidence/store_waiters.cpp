#include "health/evidence/store_waiters.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "src/base/text.h"

namespace elastic::evidence {
namespace {

constexpr std::string_view kDefaultGroup = "default_pg";

// The part behind the last slash, which is taken away with it; nothing where there is no slash.
std::optional<std::string_view> take_last_part(std::string_view& text) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view part = text.substr(slash + 1);
  text = text.substr(0, slash);
  return part;
}

// A number as PyTorch writes it: digits only, and no more than an int has.
std::optional<int> number_of_part(std::string_view part) {
  if (part.empty() || part.size() > 9 || part.find_first_not_of("0123456789") != std::string_view::npos) return {};
  return static_cast<int>(parse_int(part).value_or(0));
}

void read_init(std::string_view place, std::span<const std::string_view> keys, int world_size, StoreFacts& facts) {
  for (const std::string_view key : keys) {
    const auto found = init_key(key);
    if (found && found->place == place && found->rank < world_size) facts.came.push_back(found->rank);
  }
  std::ranges::sort(facts.came);
  for (int rank = 0; rank < world_size; ++rank) {
    if (!std::ranges::binary_search(facts.came, rank)) facts.never_came.push_back(rank);
  }
}

}  // namespace

// PREFIX/GROUP/NUMBER//DEVICE//NUMBER/RANK
std::optional<InitKey> init_key(std::string_view key) {
  std::string_view rest = key;
  const auto last = take_last_part(rest);
  const auto rank = number_of_part(last.value_or(""));
  if (!rank) return {};
  const std::string_view place = key.substr(0, key.size() - last->size());
  const auto context = take_last_part(rest);
  if (!number_of_part(context.value_or("")) || !rest.ends_with('/')) return {};
  rest.remove_suffix(1);
  const auto device = take_last_part(rest);
  if (!device || device->empty() || !rest.ends_with('/')) return {};
  rest.remove_suffix(1);
  const auto instance = take_last_part(rest);
  if (!number_of_part(instance.value_or(""))) return {};
  const std::string_view group = rest.substr(rest.rfind('/') + 1);
  if (group.empty()) return {};
  return InitKey{.place = place, .is_default_group = group == kDefaultGroup, .rank = *rank};
}

StoreFacts store_facts(std::span<const std::string_view> keys, std::span<const StoreWait> waits, int world_size) {
  StoreFacts facts;
  const std::unordered_set<std::string_view> present(keys.begin(), keys.end());
  std::map<std::string_view, AwaitedKey> awaited;
  for (const StoreWait& wait : waits) {
    for (const std::string& key : wait.keys) {
      if (present.contains(key)) continue;
      AwaitedKey& entry = awaited[key];
      ++entry.clients;
      if (wait.rank) entry.ranks.push_back(*wait.rank);
    }
  }
  // A group that is made anew, or has several backends, has as many inits, each in a place of its own.
  std::map<std::string_view, std::size_t> inits;
  for (const auto& [key, entry] : awaited) {
    const auto found = init_key(key);
    if (found && found->is_default_group) inits[found->place] += entry.clients;
  }
  if (!inits.empty()) {
    const auto most = std::ranges::max_element(inits, {}, [](const auto& init) { return init.second; });
    read_init(most->first, keys, world_size, facts);
  }
  for (auto& [key, entry] : awaited) {
    entry.key = printable(key, kAwaitedKeyBytes);
    std::ranges::sort(entry.ranks);
    facts.awaited.push_back(std::move(entry));
  }
  std::sort(facts.awaited.begin(), facts.awaited.end(), [](const AwaitedKey& a, const AwaitedKey& b) {
    return a.clients != b.clients ? a.clients > b.clients : a.key < b.key;
  });
  facts.has_more_awaited = facts.awaited.size() > kAwaitedKeys;
  if (facts.has_more_awaited) facts.awaited.resize(kAwaitedKeys);
  return facts;
}

}  // namespace elastic::evidence
