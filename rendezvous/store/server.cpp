#include "rendezvous/store/server.h"

#include <malloc.h>

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace elastic::store {
namespace {

// With so many bytes of replies to the requests of one read, they are handed to the kernel before the others are
// served.
constexpr std::size_t kSendEarlyBytes = 256 * 1024;
// Large replies are sent in slices, one for each client in a turn of the loop: of so many bytes, or less if slices of
// all clients would delay small requests.
constexpr std::size_t kSliceBytes = 256 * 1024;
constexpr std::size_t kLeastSliceBytes = 16 * 1024;
constexpr std::size_t kSlicesBytes = 2 * 1024 * 1024;
// Shorter replies are sent at once.
constexpr std::size_t kSendAtOnceBytes = 512 * 1024;
// How many bytes an idle connection keeps allocated for its next replies.
constexpr std::size_t kKeptReplyBytes = 1024;

// The memory of a connection without requests and replies.
constexpr std::size_t kConnectionBytes = 1024;
// The C library does not return freed memory to the system by itself. If so much of it is free, and that is half of
// all, it is returned after a while: this takes milliseconds, and memory that is used again soon is kept.
constexpr std::size_t kMuchFreeBytes = 8 * 1024 * 1024;
constexpr std::int64_t kGiveBackMs = 500;

// Port scanners and web browsers that connect here are not the user's concern.
bool concerns_user(Refusal::Kind kind) {
  switch (kind) {
    case Refusal::Kind::kHttp:
    case Refusal::Kind::kTls:
    case Refusal::Kind::kSsh:
    case Refusal::Kind::kUnknownProtocol:
    case Refusal::Kind::kSilent: return false;
    default: return true;
  }
}

}  // namespace

struct Server::Connection {
  ClientId client;
  std::unique_ptr<net::Stream> stream;
  Decoder decoder;
  Replies replies;                // those that the stream has not got yet
  std::string ahead;              // bytes that were read, and are served when the client has read replies
  std::size_t transit_bytes = 0;  // as of when they were last counted
  bool is_sending = false;        // it is counted in sending_
  bool paused = false;            // nothing is read from it
  bool ending = false;            // it is closed when the client has read all replies
};

// The memory that waits for a client, without the chunks in its replies, which are counted once for all clients.
std::size_t Server::bytes_under_way(const Connection& connection) {
  return connection.decoder.held_bytes() + connection.stream->held_bytes() + connection.ahead.size();
}

Server::Server(net::Loop& loop, const ServerBounds& bounds)
    : loop_(loop),
      bounds_(bounds),
      next_deadline_(loop),
      keyspace_(std::make_unique<Keyspace>(bounds.store_bytes)),
      give_back_(loop) {}

Result<std::unique_ptr<Server>> Server::open(net::Loop& loop, const std::string& address, std::uint16_t port,
                                             const ServerBounds& bounds) {
  std::unique_ptr<Server> server(new Server(loop, bounds));
  if (Status listening = server->listen(address, port); !listening) return std::unexpected(listening.error());
  return server;
}

Status Server::listen_also(const std::string& address) { return listen(address, port()); }

Status Server::listen(const std::string& address, std::uint16_t port) {
  auto listener = net::Listener::open(loop_, address, port,
                                      [this](std::unique_ptr<net::Stream> stream) { accept(std::move(stream)); });
  if (!listener) return std::unexpected(std::move(listener.error()));
  listeners_.push_back(std::move(*listener));
  return {};
}

std::unique_ptr<Server> Server::without_port(net::Loop& loop, const ServerBounds& bounds) {
  return std::unique_ptr<Server>(new Server(loop, bounds));
}

void Server::adopt(std::unique_ptr<net::Stream> stream, Bytes bytes) {
  if (Connection* connection = accept(std::move(stream))) serve(*connection, bytes);
}

Server::~Server() {
  connections_.clear();
  keyspace_.reset();
  if (most_held_bytes_ >= kMuchFreeBytes) malloc_trim(0);
}

void Server::reset() {
  ELASTIC_CHECK(serving_ == nullptr);
  connections_.clear();
  newcomers_.clear();
  transit_bytes_ = 0;
  sending_ = 0;
  for (const auto& listener : listeners_) listener->refuse_queued();
  keyspace_ = std::make_unique<Keyspace>(bounds_.store_bytes);
  watch_memory();
}

Server::Stats Server::stats() const {
  Stats stats = stats_;
  for (const std::uint64_t count : stats.operations) stats.commands += count;
  stats.connections = connections_.size();
  stats.keys = keyspace_->keys();
  stats.store_bytes = keyspace_->held_bytes();
  stats.transit_bytes = keyspace_->loose()->count;
  for (const auto& [client, connection] : connections_) stats.transit_bytes += bytes_under_way(*connection);
  return stats;
}

std::string Server::peer_of(ClientId client) const {
  const auto found = connections_.find(client);
  return found == connections_.end() ? std::string() : found->second->stream->peer();
}

Server::Connection* Server::accept(std::unique_ptr<net::Stream> stream) {
  ++stats_.accepted;
  const std::string address = stream->peer_address();
  if (!admission_.admits(address)) {
    tell_refused(address, {Refusal::Kind::kNotAdmitted, admission_.why_not()});
    return nullptr;
  }
  auto connection = std::make_unique<Connection>(++last_client_, std::move(stream));
  Connection* served = connection.get();
  connections_.emplace(served->client, std::move(connection));
  newcomers_.push_back({served->client, loop_.now_ms() + bounds_.greeting_ms});
  if (newcomers_.size() == 1) next_deadline_.start(bounds_.greeting_ms, [this] { close_silent_newcomers(); });
  served->stream->start({.on_data = [this, served](Bytes bytes) { serve(*served, bytes); },
                         .on_end = [this, served] { close(served->client); },
                         .on_drained = [this, served] { go_on(*served); }});
  return served;
}

void Server::serve(Connection& connection, Bytes bytes) {
  serving_ = &connection;
  const std::optional<Refusal> refusal = carry_out(connection, bytes);
  serving_ = nullptr;
  send(connection);
  if (!woken_.empty()) send_to_woken();
  if (refusal) {
    refuse_behind_replies(connection, *refusal);
  } else {
    if (is_behind(connection)) pause(connection);
    ELASTIC_CHECK(connection.paused || connection.ahead.empty());
    count_transit(connection);
  }
  watch_memory();
}

std::optional<Refusal> Server::carry_out(Connection& connection, Bytes bytes) {
  for (;;) {
    switch (connection.decoder.next(bytes)) {
      case Decoder::Step::kNeedMore: return {};
      case Decoder::Step::kRefused: return connection.decoder.refusal();
      case Decoder::Step::kCommand: break;
    }
    ++stats_.operations[static_cast<std::size_t>(connection.decoder.command().op)];
    auto done = keyspace_->apply(connection.client, connection.decoder.command(), *this);
    if (!done) return std::move(done.error());
    if (connection.replies.size() < kSendEarlyBytes) continue;
    send(connection);
    if (!is_behind(connection)) continue;
    connection.decoder.forget_command();  // the next command may take long to come
    connection.ahead.assign(bytes.begin(), bytes.end());
    return {};
  }
}

void Server::send(Connection& connection) {
  Replies& replies = connection.replies;
  if (connection.stream->held_bytes() > 0) {
    replies.cut_if_long(keyspace_->loose());
  } else if (!replies.empty()) {
    if (!replies.has_chunks() && replies.size() <= kSendAtOnceBytes) {
      connection.stream->write(std::move(replies.end()));
      // The memory of what was sent at once is kept for the next replies.
      replies.end().clear();
      if (replies.end().capacity() > kKeptReplyBytes) std::string().swap(replies.end());
    } else {
      auto slice = std::make_shared<Replies::Slice>(replies.take_bytes(slice_bytes(), keyspace_->loose()));
      connection.stream->write(slice->pieces, slice);
    }
  }
  if (connection.is_sending != replies.empty()) return;
  connection.is_sending = !replies.empty();
  connection.is_sending ? ++sending_ : --sending_;
}

std::size_t Server::slice_bytes() const {
  return std::clamp(kSlicesBytes / std::max<std::size_t>(sending_, 1), kLeastSliceBytes, kSliceBytes);
}

void Server::send_to_woken() {
  for (Connection* const woken : woken_) send(*woken);
  woken_.clear();
}

bool Server::is_behind(const Connection& connection) const {
  return connection.replies.size() + connection.stream->unsent_bytes() > bounds_.unread_bytes;
}

void Server::pause(Connection& connection) {
  if (connection.paused) return;
  connection.paused = true;
  connection.stream->pause();
}

void Server::go_on(Connection& connection) {
  send(connection);
  if (!connection.paused || is_behind(connection)) return;
  if (connection.ending) {
    if (connection.replies.empty() && connection.stream->held_bytes() == 0) close(connection.client);
    return;
  }
  connection.paused = false;
  if (!connection.ahead.empty()) {
    const ClientId client = connection.client;
    const std::string ahead = std::exchange(connection.ahead, {});
    serve(connection, {reinterpret_cast<const std::uint8_t*>(ahead.data()), ahead.size()});
    if (!connections_.contains(client) || connection.paused) return;
  }
  connection.stream->resume();
}

void Server::count_transit(Connection& connection) {
  recount_transit(connection);
  if (transit_bytes() <= bounds_.transit_bytes) return;
  for (const auto& [client, other] : connections_) recount_transit(*other);
  // The memory of a connection is freed soon after its end.
  std::size_t ended = 0;
  while (!connections_.empty() && transit_bytes() > bounds_.transit_bytes + ended)
    ended += end_who_has_most_under_way();
}

void Server::recount_transit(Connection& connection) {
  const std::size_t now = bytes_under_way(connection);
  if (now == connection.transit_bytes) return;
  transit_bytes_ += now - connection.transit_bytes;
  connection.transit_bytes = now;
}

std::size_t Server::end_who_has_most_under_way() {
  const auto held = [](const auto& entry) { return entry.second->transit_bytes + entry.second->replies.loose_bytes(); };
  const auto most = std::ranges::max_element(connections_, {}, held);
  ELASTIC_CHECK(most != connections_.end());
  const std::size_t bytes = held(*most);
  refuse(*most->second,
         {Refusal::Kind::kTransitFull,
          format("unfinished requests and unread replies of all clients have more than {} bytes, and it had the most, "
                 "{}; let fewer workers exchange large values at once",
                 bounds_.transit_bytes, bytes)});
  return bytes;
}

void Server::refuse_behind_replies(Connection& connection, const Refusal& refusal) {
  if (connection.replies.empty() && connection.stream->held_bytes() == 0) return refuse(connection, refusal);
  tell_refused(connection.stream->peer(), refusal);
  keyspace_->drop(connection.client);
  connection.ending = true;
  pause(connection);
}

void Server::refuse(Connection& connection, const Refusal& refusal) {
  tell_refused(connection.stream->peer(), refusal);
  close(connection.client);
}

void Server::tell_refused(const std::string& peer, const Refusal& refusal) {
  ++stats_.refused;
  const std::string text = format("worker store{} closed the connection from {}: {}",
                                  listeners_.empty() ? "" : format(" on port {}", port()), peer, refusal.reason);
  const auto kind = static_cast<std::size_t>(refusal.kind);
  if (told_.test(kind)) {
    log::debug("store_refused", text);
  } else if (concerns_user(refusal.kind)) {
    log::warning("store_refused", text);
  } else {
    log::info("store_refused", text);
  }
  told_.set(kind);
}

void Server::close(ClientId client) {
  keyspace_->drop(client);
  const auto found = connections_.find(client);
  ELASTIC_CHECK(found != connections_.end());
  transit_bytes_ -= found->second->transit_bytes;
  if (found->second->is_sending) --sending_;
  connections_.erase(found);
  watch_memory();
}

std::size_t Server::held_bytes() const {
  return keyspace_->held_bytes() + transit_bytes() + connections_.size() * kConnectionBytes;
}

void Server::watch_memory() {
  const std::size_t held = held_bytes();
  most_held_bytes_ = std::max(most_held_bytes_, held);
  if (will_give_back_ || held > most_held_bytes_ / 2 || most_held_bytes_ - held < kMuchFreeBytes) return;
  will_give_back_ = true;
  give_back_.start(kGiveBackMs, [this] { give_memory_back(); });
}

void Server::give_memory_back() {
  will_give_back_ = false;
  const std::size_t held = held_bytes();
  if (held > most_held_bytes_ / 2) return;  // the memory is in use again
  malloc_trim(0);
  most_held_bytes_ = held;
}

void Server::close_silent_newcomers() {
  for (; !newcomers_.empty() && newcomers_.front().deadline_ms <= loop_.now_ms(); newcomers_.pop_front()) {
    const auto found = connections_.find(newcomers_.front().client);
    if (found == connections_.end() || found->second->decoder.greeted()) continue;
    refuse(*found->second,
           {Refusal::Kind::kSilent, format("it did not send VALIDATE within {} s", bounds_.greeting_ms / 1000)});
  }
  if (newcomers_.empty()) return;
  next_deadline_.start(newcomers_.front().deadline_ms - loop_.now_ms(), [this] { close_silent_newcomers(); });
}

Replies& Server::replies_to(ClientId client) {
  if (client == kNobody) return to_nobody_;
  if (serving_ != nullptr && client == serving_->client) return serving_->replies;
  const auto found = connections_.find(client);
  ELASTIC_CHECK(found != connections_.end());
  Connection* const woken = found->second.get();
  if (woken->replies.empty()) woken_.push_back(woken);
  return woken->replies;
}

}  // namespace elastic::store
