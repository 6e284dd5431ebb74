#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace elastic::evidence {

// | keys of the worker store that are told as waited for; each of them | {kAwaitedKeys}; {kAwaitedKeyBytes} | those
// with the most clients are kept; the key is cut |
inline constexpr std::size_t kAwaitedKeys = 64;
inline constexpr std::size_t kAwaitedKeyBytes = 128;

// A client of the worker store that waits for keys, and its rank where the caller knows whose connection it is.
struct StoreWait {
  std::optional<int> rank{};
  std::vector<std::string> keys{};
};

// A key that gloo writes when a rank has come to a group's init, as PyTorch 2.15 names it:
// "/default_pg/0//cpu//0/3", or the same behind another prefix.
struct InitKey {
  std::string_view place;  // all before the rank: "/default_pg/0//cpu//0/"
  bool is_default_group = false;
  int rank = 0;  // in the group; in the default group the global rank
};
// Nothing if the key is none. Whoever has the store may leave out all other keys of what store_facts() is given.
std::optional<InitKey> init_key(std::string_view key);

// A key that is waited for and not there.
struct AwaitedKey {
  std::string key{};         // as it may be printed
  std::vector<int> ranks{};  // that wait for it, those that are known
  std::size_t clients = 0;
};

struct StoreFacts {
  // Ranks without a key in the init of the default group that somebody waits in, and those with one. Both are empty
  // where nobody waits for such a key: then all have come, or none has, or the groups are of NCCL, which has no such
  // keys.
  std::vector<int> never_came{};
  std::vector<int> came{};
  std::vector<AwaitedKey> awaited{};  // those with the most clients first
  bool has_more_awaited = false;      // than kAwaitedKeys
};

// What the store's own view says: its keys, who waits for which, and how many workers the round has.
StoreFacts store_facts(std::span<const std::string_view> keys, std::span<const StoreWait> waits, int world_size);

}  // namespace elastic::evidence
