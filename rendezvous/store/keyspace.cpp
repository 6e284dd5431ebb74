#include "rendezvous/store/keyspace.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "rendezvous/store/limits.h"
#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::store {
namespace {

using Outcome = std::expected<void, Refusal>;

// The longest text of a counter: a sign and 19 digits.
constexpr std::size_t kCounterBytes = 20;
// Sizes are compared after so many commands: after each, it would make short ones slower by several percent.
constexpr std::size_t kCommandsPerLook = 16;
// After so many commands for each key, queue and wait all of them are checked. Keyspaces with more of them than
// kMostChecked are not: that would keep all clients waiting for more than a millisecond.
constexpr std::size_t kCommandsPerCheck = 64;
constexpr std::size_t kMostChecked = 4096;
// The characters that a number may begin with.
constexpr std::string_view kOfNumbers = " \t\n\v\f\r+-0123456789";

std::unexpected<Refusal> refuse(Refusal::Kind kind, std::string reason) {
  return std::unexpected<Refusal>(Refusal{kind, std::move(reason)});
}

// Reads a number as std::stoll does, which PyTorch's server uses for a counter: blanks and a sign may precede it, and
// all that follows the digits is ignored.
std::optional<std::int64_t> read_counter(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\n\v\f\r");
  if (start == std::string_view::npos) return {};
  text.remove_prefix(start);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return {};
  }
  std::int64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc{}) return {};
  return number;
}

}  // namespace

Outcome Keyspace::apply(ClientId client, Command& command, Outbox& outbox) {
  Outcome done = carry_out(client, command, outbox);
  if (++commands_ % kCommandsPerLook != 0) return done;
  check_sizes();
  const std::size_t size = values_.size() + queues_.size() + items_ + places_;
  if (commands_ >= kCommandsPerCheck * size && size <= kMostChecked) {
    commands_ = 0;
    check_invariants();
  }
  return done;
}

Outcome Keyspace::carry_out(ClientId client, Command& command, Outbox& outbox) {
  // A wait that is answered at once takes no room.
  if (command.op != Op::kWait && !has_room(command)) return no_room();
  Replies& out = outbox.replies_to(client);
  switch (command.op) {
    case Op::kSet: store(std::move(command.key), std::move(command.value), outbox); break;
    case Op::kCompareSet: compare_set(command, out, outbox); break;
    case Op::kGet: get(command.key, out); break;
    case Op::kAdd: return add(command, out, outbox);
    case Op::kCheck: put_byte(out.end(), all_present(command.keys) ? kReady : kNotReady); break;
    case Op::kWait: return wait(client, command, out);
    case Op::kGetNumKeys: put_i64(out.end(), static_cast<std::int64_t>(values_.size())); break;
    case Op::kDeleteKey: delete_key(command.key, out); break;
    case Op::kAppend: append(command, outbox); break;
    case Op::kMultiGet: multi_get(command, out); break;
    case Op::kMultiSet: multi_set(command, outbox); break;
    case Op::kCancelWait:
      drop(client);
      put_byte(out.end(), kWaitCanceled);
      break;
    case Op::kPing: put_u32(out.end(), static_cast<std::uint32_t>(command.number)); break;
    case Op::kQueuePush: queue_push(command, outbox); break;
    case Op::kQueuePop: queue_pop(command.key, out); break;
    case Op::kQueueLen: put_i64(out.end(), queue_length(command.key)); break;
    case Op::kListKeys: list_keys(out); break;
    case Op::kBarrier: return barrier(client, command, out, outbox);
    case Op::kValidate: ELASTIC_CHECK(command.op != Op::kValidate); break;  // the decoder handles it
  }
  return {};
}

// A failed comparison with a missing key answers `expected` as if that were the value: clients rely on it.
void Keyspace::compare_set(Command& command, Replies& out, Outbox& outbox) {
  const auto found = values_.find(command.key);
  if (found == values_.end()) {
    if (!command.expected.empty()) return out.put(std::move(command.expected), loose_);
    return out.put(store(std::move(command.key), std::move(command.value), outbox));
  }
  if (found->second == command.expected) replace(found->second, std::move(command.value));
  // A wait of the same client is answered before its COMPARE_SET is, as by PyTorch's server.
  wake_all(found->first, outbox);
  out.put(found->second);
}

void Keyspace::get(std::string_view key, Replies& out) const {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    put_i64(out.end(), 0);
  } else {
    out.put(found->second);
  }
}

Outcome Keyspace::add(Command& command, Replies& out, Outbox& outbox) {
  const auto sum = counted(command.key, command.number, "ADD");
  if (!sum) return std::unexpected(sum.error());
  store(std::move(command.key), std::to_string(*sum), outbox);
  put_i64(out.end(), *sum);
  return {};
}

std::expected<std::int64_t, Refusal> Keyspace::counted(std::string_view key, std::int64_t delta,
                                                       std::string_view request) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return delta;
  // Only the beginning of a long value is read, which is hardly a number.
  std::string room;
  std::string_view value = found->second.beginning();
  if (value.find_first_not_of(kOfNumbers) == std::string_view::npos) value = found->second.whole(room);
  const auto current = read_counter(value);
  if (!current) {
    return refuse(Refusal::Kind::kNotANumber, format("its {} is for key {}, whose value {} is not a 64-bit number",
                                                     request, printable(key), printable(value, 40)));
  }
  std::int64_t sum = 0;
  if (__builtin_add_overflow(*current, delta, &sum)) {
    return refuse(Refusal::Kind::kOutOfRange, format("its {} takes key {} out of the 64-bit range ({} + {})", request,
                                                     printable(key), *current, delta));
  }
  return sum;
}

void Keyspace::delete_key(std::string_view key, Replies& out) {
  const auto found = values_.find(key);
  const bool exists = found != values_.end();
  if (exists) {
    text_bytes_ -= found->first.size() + found->second.size();
    values_.erase(found);
  }
  put_i64(out.end(), exists ? 1 : 0);
}

void Keyspace::append(Command& command, Outbox& outbox) {
  const auto at = value_at(std::move(command.key));
  text_bytes_ += command.value.size();
  at->second.append(std::move(command.value), loose_);
  wake_all(at->first, outbox);
}

void Keyspace::multi_get(const Command& command, Replies& out) const {
  for (const std::string& key : command.keys) {
    get(key, out);
    out.cut_if_long(loose_);
  }
}

void Keyspace::multi_set(Command& command, Outbox& outbox) {
  ELASTIC_CHECK(command.keys.size() == command.values.size());
  for (std::size_t i = 0; i < command.keys.size(); ++i) {
    store(std::move(command.keys[i]), std::move(command.values[i]), outbox);
  }
}

void Keyspace::list_keys(Replies& out) const {
  put_i64(out.end(), static_cast<std::int64_t>(values_.size()));
  for (const auto& [key, value] : values_) {
    put_string(out.end(), key);
    out.cut_if_long(loose_);
  }
}

void Keyspace::queue_push(Command& command, Outbox& outbox) {
  const auto [at, is_new] = queues_.try_emplace(std::move(command.key));
  if (is_new) text_bytes_ += at->first.size();
  text_bytes_ += command.value.size();
  ++items_;
  at->second.emplace_back().set(std::move(command.value), loose_);
  wake_one(at->first, outbox);
}

void Keyspace::queue_pop(std::string_view key, Replies& out) {
  const auto found = queues_.find(key);
  if (found == queues_.end()) return put_i64(out.end(), 0);
  std::deque<Value>& queue = found->second;
  put_i64(out.end(), static_cast<std::int64_t>(queue.size()));
  out.put(queue.front());
  text_bytes_ -= queue.front().size();
  --items_;
  queue.pop_front();
  if (!queue.empty()) return;
  text_bytes_ -= found->first.size();
  queues_.erase(found);
}

std::int64_t Keyspace::queue_length(std::string_view key) const {
  const auto found = queues_.find(key);
  return found == queues_.end() ? 0 : static_cast<std::int64_t>(found->second.size());
}

// The count is the key's value, which all clients can read. Only reaching the world size wakes its waiters.
Outcome Keyspace::barrier(ClientId client, Command& command, Replies& out, Outbox& outbox) {
  const auto count = counted(command.key, 1, "BARRIER");
  if (!count) return std::unexpected(count.error());
  const auto at = value_at(std::move(command.key));
  replace(at->second, std::to_string(*count));
  if (*count >= command.number) {
    put_byte(out.end(), kStopWaiting);
    wake_all(at->first, outbox);
  } else {
    drop(client);
    add_place(client, std::string(at->first), WaitsFor::kAllThere);
  }
  return {};
}

// A wait that can be answered at once does not change the client's pending wait; any other wait replaces that.
Outcome Keyspace::wait(ClientId client, Command& command, Replies& out) {
  if (all_present(command.keys)) {
    put_byte(out.end(), kStopWaiting);
    return {};
  }
  if (!has_room(command)) return no_room();
  drop(client);
  for (std::string& key : command.keys) {
    if (!present(key)) add_place(client, std::move(key), WaitsFor::kKey);
  }
  return {};
}

void Keyspace::add_place(ClientId client, std::string key, WaitsFor what) {
  const auto [at, is_new] = waiters_.try_emplace(std::move(key));
  if (is_new) text_bytes_ += at->first.size();
  WaitList& list = at->second;
  // This wait is the last of the key's waiters already if the command names the key twice.
  if (!list.empty() && list.back().client == client) return;
  Wait& wait = waits_[client];
  list.push_back({client, wait.places.size(), what});
  wait.places.push_back({&*at, std::prev(list.end())});
  ++wait.missing;
  ++places_;
}

void Keyspace::drop(ClientId client) {
  const auto found = waits_.find(client);
  if (found == waits_.end()) return;
  for (const Place& place : found->second.places) {
    if (place.key == nullptr) continue;
    place.key->second.erase(place.waiter);
    if (place.key->second.empty()) forget_awaited(waiters_.find(place.key->first));
  }
  forget_wait(found);
}

void Keyspace::forget_awaited(Map<WaitList>::iterator key) {
  text_bytes_ -= key->first.size();
  waiters_.erase(key);
}

void Keyspace::forget_wait(std::unordered_map<ClientId, Wait>::iterator wait) {
  places_ -= wait->second.places.size();
  waits_.erase(wait);
}

std::size_t Keyspace::most_added_by(const Command& command) {
  constexpr std::size_t kAwaitedBytes = limits::kStoreEntryBytes + limits::kStorePlaceBytes;
  std::size_t bytes = command.key.size();
  switch (command.op) {
    case Op::kSet:
    case Op::kCompareSet:
    case Op::kAppend: return bytes + command.value.size() + limits::kStoreEntryBytes;
    case Op::kAdd: return bytes + kCounterBytes + limits::kStoreEntryBytes;
    case Op::kQueuePush: return bytes + command.value.size() + limits::kStoreQueueBytes + limits::kStoreItemBytes;
    case Op::kBarrier:
      return 2 * bytes + kCounterBytes + limits::kStoreEntryBytes + limits::kStoreWaitBytes + kAwaitedBytes;
    case Op::kMultiSet:
      bytes = command.keys.size() * limits::kStoreEntryBytes;
      for (const std::string& key : command.keys) bytes += key.size();
      for (const std::string& value : command.values) bytes += value.size();
      return bytes;
    case Op::kWait:
      bytes = limits::kStoreWaitBytes + command.keys.size() * kAwaitedBytes;
      for (const std::string& key : command.keys) bytes += key.size();
      return bytes;
    default: return 0;
  }
}

bool Keyspace::has_room(const Command& command) const {
  const std::size_t more = most_added_by(command);
  return more == 0 || (more <= most_bytes_ && held_bytes() <= most_bytes_ - more);
}

Outcome Keyspace::no_room() const {
  return refuse(Refusal::Kind::kStoreFull,
                format("its request could take the store beyond {} bytes, the most for keys, values and "
                       "waits in all; delete keys that nobody needs any more, and keep large data "
                       "elsewhere",
                       most_bytes_));
}

bool Keyspace::present(std::string_view key) const {
  return values_.contains(key) || (!queues_.empty() && queues_.contains(key));
}

bool Keyspace::all_present(const std::vector<std::string>& keys) const {
  for (const std::string& key : keys) {
    if (!present(key)) return false;
  }
  return true;
}

const Value& Keyspace::store(std::string&& key, std::string&& value, Outbox& outbox) {
  const auto at = value_at(std::move(key));
  replace(at->second, std::move(value));
  wake_all(at->first, outbox);
  return at->second;
}

auto Keyspace::value_at(std::string&& key) -> Map<Value>::iterator {
  const auto [at, is_new] = values_.try_emplace(std::move(key));
  if (is_new) text_bytes_ += at->first.size();
  return at;
}

void Keyspace::replace(Value& value, std::string&& by) {
  text_bytes_ += by.size() - value.size();
  value.set(std::move(by), loose_);
}

void Keyspace::wake_all(std::string_view key, Outbox& outbox) {
  if (waiters_.empty()) return;
  const auto found = waiters_.find(key);
  if (found == waiters_.end()) return;
  const WaitList list = std::move(found->second);
  forget_awaited(found);
  for (const Waiter& waiter : list) arrived(waiter, outbox);
}

// An item wakes one client: the one that has waited the longest for this queue alone. If there is none, all waits that
// name this queue among other keys have one key less to wait for.
void Keyspace::wake_one(std::string_view key, Outbox& outbox) {
  const auto found = waiters_.find(key);
  if (found == waiters_.end()) return;
  WaitList& list = found->second;
  WaitList woken;
  for (auto waiter = list.begin(); waiter != list.end() && woken.empty();) {
    const auto here = waiter++;
    if (here->what == WaitsFor::kKey && waits_.at(here->client).missing == 1) {
      woken.splice(woken.end(), list, here);
    }
  }
  if (woken.empty()) {
    for (auto waiter = list.begin(); waiter != list.end();) {
      const auto here = waiter++;
      if (here->what == WaitsFor::kKey) woken.splice(woken.end(), list, here);
    }
  }
  if (list.empty()) forget_awaited(found);
  for (const Waiter& waiter : woken) arrived(waiter, outbox);
}

void Keyspace::arrived(const Waiter& waiter, Outbox& outbox) {
  const auto found = waits_.find(waiter.client);
  ELASTIC_CHECK(found != waits_.end());
  Wait& wait = found->second;
  wait.places[waiter.place].key = nullptr;
  if (--wait.missing > 0) return;
  forget_wait(found);
  put_byte(outbox.replies_to(waiter.client).end(), kStopWaiting);
}

void Keyspace::check_sizes() const {
  ELASTIC_CHECK(held_bytes() <= most_bytes_);
  ELASTIC_CHECK(queues_.size() <= items_);
  ELASTIC_CHECK(waiters_.size() <= places_ && waits_.size() <= places_);
  ELASTIC_CHECK(waiters_.empty() == waits_.empty());
}

void Keyspace::check_invariants() const {
  check_sizes();
  check_waits();
  std::size_t text_bytes = 0;
  std::size_t items = 0;
  for (const auto& [key, value] : values_) text_bytes += key.size() + value.size();
  for (const auto& [key, queue] : queues_) {
    ELASTIC_CHECK(!queue.empty());
    items += queue.size();
    text_bytes += key.size();
    for (const Value& item : queue) text_bytes += item.size();
  }
  for (const auto& [key, list] : waiters_) text_bytes += key.size();
  ELASTIC_CHECK(items_ == items);
  ELASTIC_CHECK(text_bytes_ == text_bytes);
}

void Keyspace::check_waits() const {
  std::size_t missing = 0;
  for (const auto& awaited : waiters_) {
    const auto& [key, list] = awaited;
    ELASTIC_CHECK(!list.empty());
    missing += list.size();
    for (const Waiter& waiter : list) {
      const auto wait = waits_.find(waiter.client);
      ELASTIC_CHECK(wait != waits_.end() && waiter.place < wait->second.places.size());
      const Place& place = wait->second.places[waiter.place];
      ELASTIC_CHECK(place.key == &awaited && &*place.waiter == &waiter);
      // A key that is set wakes all clients that wait for it, except where a BARRIER counts callers in it.
      ELASTIC_CHECK(waiter.what == WaitsFor::kAllThere || !values_.contains(key) || counted(key, 0, "BARRIER"));
    }
  }
  std::size_t places = 0;
  for (const auto& [client, wait] : waits_) {
    const auto left = std::ranges::count_if(wait.places, [](const Place& place) { return place.key != nullptr; });
    ELASTIC_CHECK(wait.missing > 0 && wait.missing == static_cast<std::size_t>(left));
    missing -= wait.missing;
    places += wait.places.size();
  }
  ELASTIC_CHECK(missing == 0);
  ELASTIC_CHECK(places_ == places);
}

}  // namespace elastic::store
