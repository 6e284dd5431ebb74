#include "rendezvous/store/server.h"

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
};

Server::Server(net::Loop& loop, std::int64_t greeting_ms)
    : loop_(loop), greeting_ms_(greeting_ms), next_deadline_(loop) {}

Result<std::unique_ptr<Server>> Server::open(net::Loop& loop, const std::string& address, std::uint16_t port,
                                             std::int64_t greeting_ms) {
  std::unique_ptr<Server> server(new Server(loop, greeting_ms));
  auto listener = net::Listener::open(loop, address, port,
                                      [self = server.get()](std::unique_ptr<net::Stream> stream) {
                                        self->accept(std::move(stream));
                                      });
  if (!listener) return std::unexpected(std::move(listener.error()));
  server->listener_ = std::move(*listener);
  return server;
}

Server::~Server() = default;

void Server::reset() {
  ELASTIC_CHECK(serving_ == nullptr);
  connections_.clear();
  newcomers_.clear();
  listener_->refuse_queued();
  keyspace_ = std::make_unique<Keyspace>();
}

Server::Stats Server::stats() const {
  Stats stats = stats_;
  stats.connections = connections_.size();
  stats.keys = keyspace_->keys();
  return stats;
}

void Server::accept(std::unique_ptr<net::Stream> stream) {
  ++stats_.accepted;
  auto connection = std::make_unique<Connection>(++last_client_, std::move(stream));
  Connection* served = connection.get();
  connections_.emplace(served->client, std::move(connection));
  newcomers_.push_back({served->client, loop_.now_ms() + greeting_ms_});
  if (newcomers_.size() == 1) next_deadline_.start(greeting_ms_, [this] { close_silent_newcomers(); });
  served->stream->start({.on_data = [this, served](Bytes bytes) { serve(*served, bytes); },
                         .on_end = [this, served] { close(served->client); }});
}

void Server::serve(Connection& connection, Bytes bytes) {
  serving_ = &connection;
  std::optional<Refusal> refusal = carry_out(connection, bytes);
  serving_ = nullptr;
  std::optional<Refusal> unread = send(connection);
  send_to_woken();
  if (!refusal) refusal = std::move(unread);
  if (refusal) refuse(connection, *refusal);
}

std::optional<Refusal> Server::carry_out(Connection& connection, Bytes bytes) {
  for (;;) {
    switch (connection.decoder.next(bytes)) {
      case Decoder::Step::kNeedMore: return {};
      case Decoder::Step::kRefused: return connection.decoder.refusal();
      case Decoder::Step::kCommand: break;
    }
    ++stats_.commands;
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
  const std::size_t unread = connection.stream->unsent_bytes();
  if (unread <= limits::kStoreUnreadReplyBytes) return {};
  return Refusal{Refusal::Kind::kUnreadReplies,
                 format("it does not read its replies; {} bytes of them are waiting", unread)};
}

// A wake-up is one byte for one request: only a client's own requests make it leave much unread.
void Server::send_to_woken() {
  for (Connection* const woken : woken_) send(*woken);
  woken_.clear();
}

void Server::refuse(Connection& connection, const Refusal& refusal) {
  ++stats_.refused;
  const std::string text = format("worker store on port {} closed the connection from {}: {}",
                                  port(), connection.stream->peer(), refusal.reason);
  const auto kind = static_cast<std::size_t>(refusal.kind);
  if (told_.test(kind)) {
    log::debug(text);
  } else if (concerns_user(refusal.kind)) {
    log::warning(text);
  } else {
    log::info(text);
  }
  told_.set(kind);
  close(connection.client);
}

void Server::close(ClientId client) {
  keyspace_->drop(client);
  connections_.erase(client);
}

void Server::close_silent_newcomers() {
  for (; !newcomers_.empty() && newcomers_.front().deadline_ms <= loop_.now_ms(); newcomers_.pop_front()) {
    const auto found = connections_.find(newcomers_.front().client);
    if (found == connections_.end() || found->second->decoder.greeted()) continue;
    refuse(*found->second, {Refusal::Kind::kSilent, format("it did not say VALIDATE within {} s", greeting_ms_ / 1000)});
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
