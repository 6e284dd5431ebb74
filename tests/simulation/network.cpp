#include "tests/simulation/network.h"

#include <algorithm>
#include <utility>

namespace elastic::simulation {

namespace {
constexpr std::size_t index(End end) { return static_cast<std::size_t>(end); }
// TCP repeats the first SYN after a second, and then after twice as long each time.
constexpr Ms kFirstSynAgainMs = 1000;
constexpr int kSyns = 4;
}  // namespace

void Network::set_speed(Ms delay_ms, Ms user_timeout_ms, bool steady) {
  steady_ = steady;
  longest_delay_ms_ = delay_ms;
  user_timeout_ms_ = user_timeout_ms;
}

int Network::add_host() {
  hosts_.emplace_back();
  return static_cast<int>(hosts_.size()) - 1;
}

bool Network::is_cut(int from, int to) const {
  if (cuts_.empty()) return false;
  const auto found = cuts_.find({from, to});
  return found != cuts_.end() && found->second > 0;
}

bool Network::reaches(int from, int to) const {
  const auto awake = [&](int host) { return is_up(host) && !is_frozen(host); };
  return awake(from) && awake(to) && !is_cut(from, to) && !is_cut(to, from);
}

bool Network::is_open(ConnectionId id, End end) const { return connections_[id].open[index(end)]; }

std::size_t Network::open_connections() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(connections_, [](const Connection& c) { return c.open[0] || c.open[1]; }));
}

Ms Network::delay_of(const Way& way) {
  if (way.is_local) return 0;
  if (steady_) return longest_delay_ms_;
  const Ms jitter = random_.chance(20) ? random_.range(0, way.delay_ms + 1) : 0;
  return way.delay_ms + jitter + (burst_ms_ > 0 ? random_.range(0, burst_ms_) : 0);
}

// --- Making a connection. --------------------------------------------------------------------------

ConnectionId Network::connect(int host, ConnectionOwner& client, ListenerId to) {
  const auto id = static_cast<ConnectionId>(connections_.size());
  Connection& c = connections_.emplace_back();
  c.client_host = host;
  c.client = &client;
  c.to = to;
  c.open[index(End::kClient)] = true;
  for (Way& way : c.way) {
    way.is_local = host == listeners_[to].host;
    way.delay_ms = random_.range(0, longest_delay_ms_);
  }
  timeline_.after(delay_of(c.way[0]), [this, id] { knock(id); });
  return id;
}

void Network::knock(ConnectionId id) {
  Connection& c = at(id);
  if (!c.open[index(End::kClient)]) return;
  if (!reaches(c.client_host, listeners_[c.to].host)) {
    if (++c.attempts >= kSyns) return break_end(id, End::kClient, "it timed out");
    timeline_.after(kFirstSynAgainMs << (c.attempts - 1), [this, id] { knock(id); });
    return;
  }
  if (!listeners_[c.to].listens) {
    timeline_.after(delay_of(c.way[1]), [this, id] { break_end(id, End::kClient, "connection refused"); });
    return;
  }
  c.made = true;
  c.open[index(End::kServer)] = true;
  listeners_[c.to].owner->connection_made(id);
  timeline_.after(delay_of(c.way[1]), [this, id] {
    Connection& known = at(id);
    if (!known.open[index(End::kClient)]) return;
    known.client_knows = true;
    known.client->connection_made(id);
  });
}

// --- Sending and receiving. ------------------------------------------------------------------------

void Network::send(ConnectionId id, End from, ByteString bytes) {
  Connection& c = at(id);
  if (!c.open[index(from)] || bytes.empty()) return;
  ++messages_;
  bytes_ += bytes.size();
  if (bytes.size() > 1 && random_.chance(10)) {
    const auto middle = bytes.begin() + random_.range(1, static_cast<std::int64_t>(bytes.size()) - 1);
    push(id, from, {ByteString(bytes.begin(), middle), 0});
    push(id, from, {ByteString(middle, bytes.end()), 0});
    return;
  }
  push(id, from, {std::move(bytes), 0});
}

void Network::push(ConnectionId id, End from, Chunk chunk) {
  if (at(id).is_reset && !chunk.is_reset) return;
  Way& way = at(id).way[index(from)];
  chunk.at_ms = std::max(way.last_ms, timeline_.now_ms() + delay_of(way));
  const bool with_the_last = !way.flight.empty() && way.last_ms == chunk.at_ms;
  way.last_ms = chunk.at_ms;
  way.flight.push_back(std::move(chunk));
  if (way.waits || with_the_last) return;
  timeline_.at(way.last_ms, [this, id, from] { arrive(id, from); });
}

void Network::arrive(ConnectionId id, End from) {
  Connection& c = at(id);
  Way& way = c.way[index(from)];
  if (way.waits || way.flight.empty()) return;
  const int source = host_of(c, from);
  const int target = host_of(c, other(from));
  const bool stands_still = is_frozen(source) || is_frozen(target) || !is_up(target);
  if (stands_still || is_cut(source, target)) {
    way.waits = true;
    return arm_timeout(id, from);
  }
  if (is_cut(target, source)) arm_timeout(id, from);  // it arrives, but is not acknowledged
  ByteString merged;
  while (!way.flight.empty() && way.flight.front().at_ms <= timeline_.now_ms()) {
    Chunk chunk = std::move(way.flight.front());
    way.flight.pop_front();
    take(id, from, std::move(chunk), merged);
  }
  hand_over(id, other(from), merged);
}

void Network::take(ConnectionId id, End from, Chunk chunk, ByteString& merged) {
  const End to = other(from);
  if (!at(id).open[index(to)]) {
    // The end of a connection whose other end is closed already needs no reset.
    if (!chunk.is_end && !chunk.is_reset) answer_by_reset(id, from);
    return;
  }
  if (!chunk.is_end && !chunk.is_reset) {
    if (merged.empty())
      merged = std::move(chunk.bytes);
    else
      merged.insert(merged.end(), chunk.bytes.begin(), chunk.bytes.end());
    return;
  }
  hand_over(id, to, merged);
  break_end(id, to, chunk.is_reset ? "it was reset" : "it was ended by the other side");
}

void Network::hand_over(ConnectionId id, End to, ByteString& merged) {
  Connection& c = at(id);
  if (merged.empty() || !c.open[index(to)]) return;
  trace_.add(id * 2 + index(to));
  trace_.add(Bytes(merged));
  owner_of(c, to).connection_read(id, std::exchange(merged, {}));
}

void Network::answer_by_reset(ConnectionId id, End to) {
  if (!at(id).open[index(to)]) return;
  push(id, other(to), {{}, 0, false, true});
}

void Network::break_end(ConnectionId id, End end, const std::string& why) {
  Connection& c = at(id);
  if (!c.open[index(end)]) return;
  c.open[index(end)] = false;
  c.way[index(end)].flight.clear();
  trace_.add(why);
  owner_of(c, end).connection_broken(id, why);
}

void Network::arm_timeout(ConnectionId id, End from) {
  Way& way = at(id).way[index(from)];
  const bool is_within_host = host_of(at(id), from) == host_of(at(id), other(from));
  if (user_timeout_ms_ == 0 || way.timing_out || is_within_host) return;
  way.timing_out = true;
  timeline_.after(user_timeout_ms_, [this, id, from] {
    Connection& c = at(id);
    Way& late = c.way[index(from)];
    late.timing_out = false;
    if (!c.open[index(from)]) return;
    if (!reaches(host_of(c, from), host_of(c, other(from)))) {
      break_end(id, from, "what was sent was not acknowledged");
    }
  });
}

// --- Ends. -----------------------------------------------------------------------------------------

void Network::close(ConnectionId id, End end) {
  Connection& c = at(id);
  if (!c.open[index(end)]) return;
  c.open[index(end)] = false;
  if (c.made) push(id, end, {{}, 0, true});
}

void Network::close_all_of(ListenerId listener) {
  for (ConnectionId id = 1; id < connections_.size(); ++id) {
    if (connections_[id].to == listener) close(id, End::kServer);
  }
}

void Network::reset(ConnectionId id) {
  Connection& c = at(id);
  if (!c.made) return;
  c.is_reset = true;
  for (Way& way : c.way) way.flight.clear();
  for (const End end : {End::kClient, End::kServer}) {
    timeline_.after(delay_of(c.way[index(end)]), [this, id, end] { break_end(id, end, "it was reset"); });
  }
}

void Network::host_down(int host) {
  ++changes_;
  hosts_[static_cast<std::size_t>(host)].up = false;
  for (Connection& c : connections_) {
    for (const End end : {End::kClient, End::kServer}) {
      if (host_of(c, end) == host) c.open[index(end)] = false;
    }
  }
}

void Network::host_up(int host) {
  hosts_[static_cast<std::size_t>(host)].up = true;
  hosts_[static_cast<std::size_t>(host)].frozen = 0;
  let_go();
}

void Network::freeze(int host) {
  ++changes_;
  ++hosts_[static_cast<std::size_t>(host)].frozen;
}

void Network::thaw(int host) {
  int& frozen = hosts_[static_cast<std::size_t>(host)].frozen;
  if (frozen > 0) --frozen;
  let_go();
}

void Network::heal(int from, int to) {
  const auto found = cuts_.find({from, to});
  if (found == cuts_.end()) return;
  if (--found->second <= 0) cuts_.erase(found);
  let_go();
}

void Network::heal_all() {
  cuts_.clear();
  burst_ms_ = 0;
  let_go();
}

// Bytes that have waited are sent again some time after their way is open.
void Network::let_go() {
  ++changes_;
  for (ConnectionId id = 1; id < connections_.size(); ++id) {
    for (const End from : {End::kClient, End::kServer}) {
      Connection& c = at(id);
      Way& way = c.way[index(from)];
      if (!way.waits) continue;
      const int source = host_of(c, from);
      const int target = host_of(c, other(from));
      if (is_cut(source, target) || !is_up(target) || is_frozen(source) || is_frozen(target)) continue;
      way.waits = false;
      const Ms again_ms = timeline_.now_ms() + random_.range(0, 800);
      for (Chunk& chunk : way.flight) chunk.at_ms = std::max(chunk.at_ms, again_ms);
      way.last_ms = std::max(way.last_ms, again_ms);
      timeline_.at(again_ms, [this, id, from] { arrive(id, from); });
      timeline_.at(way.last_ms, [this, id, from] { arrive(id, from); });
    }
  }
}

}  // namespace elastic::simulation
