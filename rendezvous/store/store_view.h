#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace elastic::store {

// | a store's view of who waits: clients; keys of one; bytes of a key; inits of the default group | {kViewClients};
// {kViewKeysOfClient}; {kViewKeyBytes}; {kViewInits} | the rest is left out, and the source is `partial` |
inline constexpr std::size_t kViewClients = 65'536;
inline constexpr std::size_t kViewKeysOfClient = 8;
inline constexpr std::size_t kViewKeyBytes = 256;
inline constexpr std::size_t kViewInits = 8;

// What a worker store knows of a round that makes no progress.
struct StoreView {
  // A client that waits.
  struct Waiting {
    std::string peer = {};               // the other end of its connection: "127.0.0.1:40312"
    std::vector<std::string> keys = {};  // those that are not there
    bool operator==(const Waiting&) const = default;
  };
  std::vector<Waiting> waiting = {};  // in the order in which they have connected
  // The keys that ranks have set in the init of those groups in which somebody waits for such a key (init_key() of
  // health/evidence).
  std::vector<std::string> init_keys = {};
  // The rank that has set /exception_dump: the first whose collective has timed out. -1: the value is no rank.
  std::optional<int> first_to_time_out = {};
  bool has_more = false;  // there is more than the bounds allow
  bool operator==(const StoreView&) const = default;
};

}  // namespace elastic::store
