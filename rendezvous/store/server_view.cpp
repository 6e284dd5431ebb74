// What a store knows of a round that makes no progress, and what it tells its workers then.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "health/evidence/store_waiters.h"
#include "rendezvous/store/server.h"
#include "src/base/text.h"

namespace elastic::store {
namespace {

// PyTorch's NCCL backend sets it in the store itself, behind no prefix: 4 bytes in the host's order.
constexpr std::string_view kTimedOut = "/exception_dump";
constexpr std::int32_t kNoRank = -1;

int rank_of(std::string_view value) {
  std::int32_t rank = kNoRank;
  if (value.size() == sizeof rank) std::memcpy(&rank, value.data(), sizeof rank);
  return std::max(rank, kNoRank);
}

}  // namespace

void Server::ask_for_dumps() {
  if (keyspace_->has_key(kTimedOut)) return;
  Command set;
  set.op = Op::kSet;
  set.key = kTimedOut;
  set.value.resize(sizeof kNoRank);
  std::memcpy(set.value.data(), &kNoRank, sizeof kNoRank);
  // A store that is full has no room for it: then there are no dumps.
  (void)keyspace_->apply(kNobody, set, *this);
  send_to_woken();
}

StoreView Server::view(int world_size) const {
  StoreView out;
  std::map<ClientId, std::vector<std::string>> waiting;
  std::set<std::string> places;
  keyspace_->each_wait([&](ClientId client, std::string_view key) {
    const bool has_room = waiting.contains(client) || waiting.size() < kViewClients;
    if (!has_room || key.size() > kViewKeyBytes ||
        (waiting.contains(client) && waiting[client].size() >= kViewKeysOfClient)) {
      out.has_more = true;
      return;
    }
    waiting[client].emplace_back(key);
    const auto init = evidence::init_key(key);
    if (!init || !init->is_default_group) return;
    if (places.size() < kViewInits) {
      places.emplace(init->place);
    } else {
      out.has_more = out.has_more || !places.contains(std::string(init->place));
    }
  });
  for (auto& [client, keys] : waiting) {
    std::ranges::sort(keys);
    out.waiting.push_back({peer_of(client), std::move(keys)});
  }
  for (const std::string& place : places) {
    for (int rank = 0; rank < world_size; ++rank) {
      std::string key = format("{}{}", place, rank);
      if (keyspace_->has_key(key)) out.init_keys.push_back(std::move(key));
    }
  }
  if (const auto value = keyspace_->beginning_of(kTimedOut)) out.first_to_time_out = rank_of(*value);
  return out;
}

}  // namespace elastic::store
