#include "rendezvous/store/server.h"

#include <malloc.h>

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace elastic::store {
namespace {

// Replies of one read that are handed to the kernel before the rest of it is served: what a client
// asks for in one go stays within kStoreUnreadReplyBytes plus one reply.
constexpr std::size_t kSendEarlyBytes = 256 * 1024;
// What an idle connection keeps allocated for its next replies.
constexpr std::size_t kKeptReplyBytes = 1024;

// What a connection takes by itself.
constexpr std::size_t kConnectionBytes = 1024;
// The C library keeps what is freed, for good. So much of it, once it is half of all, is given back
// to the system after so long: that takes milliseconds, and what comes and goes all the time is kept.
constexpr std::size_t kMuchFreeBytes = 8 * 1024 * 1024;
constexpr std::int64_t kGiveBackMs = 500;

// Whoever else scans ports or asks for a web page here is not the user's concern.
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
  std::string replies;  // of this turn, not yet given to the stream
  std::size_t transit_bytes = 0;  // when they were last counted
};

// Memory that waits for a client: what has come of its unfinished request, and its unread replies.
std::size_t Server::bytes_under_way(const Connection& connection) {
  return connection.decoder.held_bytes() + connection.stream->held_bytes();
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
  auto listener = net::Listener::open(loop, address, port,
                                      [self = server.get()](std::unique_ptr<net::Stream> stream) {
                                        self->accept(std::move(stream));
                                      });
  if (!listener) return std::unexpected(std::move(listener.error()));
  server->listener_ = std::move(*listener);
  return server;
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
  if (listener_) listener_->refuse_queued();
  keyspace_ = std::make_unique<Keyspace>(bounds_.store_bytes);
  watch_memory();
}

Server::Stats Server::stats() const {
  Stats stats = stats_;
  for (const std::uint64_t count : stats.operations) stats.commands += count;
  stats.connections = connections_.size();
  stats.keys = keyspace_->keys();
  stats.store_bytes = keyspace_->held_bytes();
  for (const auto& [client, connection] : connections_) stats.transit_bytes += bytes_under_way(*connection);
  return stats;
}

Server::Connection* Server::accept(std::unique_ptr<net::Stream> stream) {
  ++stats_.accepted;
  const std::string address = stream->peer_address();
  if (!admission_.admits(address)) {
    tell_refused(address, {Refusal::Kind::kNotAdmitted,
                           "no node of this round has this address; if it belongs to the job all the same (behind "
                           "address translation, say), give --rdzv-conf=store_admits=all"});
    return nullptr;
  }
  auto connection = std::make_unique<Connection>(++last_client_, std::move(stream));
  Connection* served = connection.get();
  connections_.emplace(served->client, std::move(connection));
  newcomers_.push_back({served->client, loop_.now_ms() + bounds_.greeting_ms});
  if (newcomers_.size() == 1) next_deadline_.start(bounds_.greeting_ms, [this] { close_silent_newcomers(); });
  served->stream->start({.on_data = [this, served](Bytes bytes) { serve(*served, bytes); },
                         .on_end = [this, served] { close(served->client); }});
  return served;
}

void Server::serve(Connection& connection, Bytes bytes) {
  serving_ = &connection;
  std::optional<Refusal> refusal = carry_out(connection, bytes);
  serving_ = nullptr;
  std::optional<Refusal> unread = send(connection);
  if (!woken_.empty()) send_to_woken();
  if (!refusal) refusal = std::move(unread);
  if (refusal) {
    refuse(connection, *refusal);
  } else {
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
    if (auto unread = send(connection)) return unread;
  }
}

std::optional<Refusal> Server::send(Connection& connection) {
  if (connection.replies.empty()) return {};
  connection.stream->write(std::move(connection.replies));
  // What was sent at once has left its memory here for the next replies.
  connection.replies.clear();
  if (connection.replies.capacity() > kKeptReplyBytes) std::string().swap(connection.replies);
  if (connection.stream->held_bytes() == 0) return {};
  const std::size_t unread = connection.stream->unsent_bytes();
  // Small replies take more memory than they have bytes, a large one is kept until all of it is read.
  const bool too_much =
      unread > bounds_.unread_bytes || connection.stream->held_bytes() > 2 * bounds_.unread_bytes;
  if (too_much) return too_much_unread(unread);
  return {};
}

Refusal Server::too_much_unread(std::size_t unread) {
  return Refusal{Refusal::Kind::kUnreadReplies,
                 format("it does not read its replies; {} bytes of them are waiting", unread)};
}

// A wake-up is one byte for one request: only a client's own requests make it leave much unread.
void Server::send_to_woken() {
  for (Connection* const woken : woken_) send(*woken);
  woken_.clear();
}

void Server::count_transit(Connection& connection) {
  const std::size_t before = connection.transit_bytes;
  recount_transit(connection);
  if (transit_bytes_ <= bounds_.transit_bytes || connection.transit_bytes <= before) return;
  for (const auto& [client, other] : connections_) recount_transit(*other);
  while (transit_bytes_ > bounds_.transit_bytes) end_who_has_most_under_way();
}

void Server::recount_transit(Connection& connection) {
  const std::size_t now = bytes_under_way(connection);
  transit_bytes_ += now - connection.transit_bytes;
  connection.transit_bytes = now;
}

void Server::end_who_has_most_under_way() {
  const auto most = std::ranges::max_element(
      connections_, {}, [](const auto& entry) { return entry.second->transit_bytes; });
  ELASTIC_CHECK(most != connections_.end());
  Connection& largest = *most->second;
  refuse(largest, {Refusal::Kind::kTransitFull,
                   format("unfinished requests and unread replies of all clients have more than {} "
                          "bytes, and it had the most, {}; let fewer workers exchange large values "
                          "at once", bounds_.transit_bytes, largest.transit_bytes)});
}

void Server::refuse(Connection& connection, const Refusal& refusal) {
  tell_refused(connection.stream->peer(), refusal);
  close(connection.client);
}

void Server::tell_refused(const std::string& peer, const Refusal& refusal) {
  ++stats_.refused;
  const std::string text =
      format("worker store{} closed the connection from {}: {}", listener_ ? format(" on port {}", port()) : "", peer,
             refusal.reason);
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
  connections_.erase(found);
  watch_memory();
}

std::size_t Server::held_bytes() const {
  return keyspace_->held_bytes() + transit_bytes_ + connections_.size() * kConnectionBytes;
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
  if (held > most_held_bytes_ / 2) return;  // it is in use again
  malloc_trim(0);
  most_held_bytes_ = held;
}

void Server::close_silent_newcomers() {
  for (; !newcomers_.empty() && newcomers_.front().deadline_ms <= loop_.now_ms(); newcomers_.pop_front()) {
    const auto found = connections_.find(newcomers_.front().client);
    if (found == connections_.end() || found->second->decoder.greeted()) continue;
    refuse(*found->second,
           {Refusal::Kind::kSilent,
            format("it did not say VALIDATE within {} s", bounds_.greeting_ms / 1000)});
  }
  if (newcomers_.empty()) return;
  next_deadline_.start(newcomers_.front().deadline_ms - loop_.now_ms(), [this] { close_silent_newcomers(); });
}

std::string& Server::replies_to(ClientId client) {
  if (client == serving_->client) return serving_->replies;
  const auto found = connections_.find(client);
  ELASTIC_CHECK(found != connections_.end());
  Connection* const woken = found->second.get();
  if (woken->replies.empty()) woken_.push_back(woken);
  return woken->replies;
}

}  // namespace elastic::store
