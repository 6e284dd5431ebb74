#include "src/net/http_server.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/base/text.h"
#include "src/net/limits.h"

namespace elastic::net {
namespace {

// How often connections whose time is over are looked for.
constexpr std::int64_t kLookMs = 1000;
// This is not 0, for libuv would then run the timer again and again without polling any socket.
constexpr std::int64_t kTurnMs = 1;

http::Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

HttpServer::HttpServer(Loop& loop, Answer answer)
    : loop_(loop),
      answer_(std::move(answer)),
      left_(limits::kHttpRequestsPerTurn),
      turn_(loop),
      deadlines_(loop),
      later_(loop),
      lingering_(loop, limits::kHttpTakesMs) {}

void HttpServer::adopt(std::unique_ptr<Stream> stream, std::span<const std::uint8_t> bytes, Answer answer) {
  if (connections_.size() >= limits::kHttpConnections) {
    ++answered_[503];
    if (lingering_.size() >= limits::kHttpConnections) return;  // a flood of connections gets no answer
    http::Response full =
        http::plain(503, format("too many connections are open ({}); try again later", connections_.size()));
    full.keep_alive = false;
    stream->write(http::bytes_of(full, false));
    return lingering_.part(std::move(stream));
  }
  const Id id = ++last_;
  Connection& connection = connections_[id];
  connection.stream = std::move(stream);
  connection.answer = std::move(answer);
  connection.peer_address = connection.stream->peer_address();
  wait_for_more(connection);
  if (connections_.size() == 1) deadlines_.start(kLookMs, [this] { close_late(); });
  connection.stream->start({.on_data = [this, id](std::span<const std::uint8_t> more) { read(id, more); },
                            .on_end = [this, id] { end(id); }});
  if (!bytes.empty()) read(id, bytes);
}

void HttpServer::read(Id id, std::span<const std::uint8_t> bytes) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (connection.ahead.empty() && connection.later == 0) {
    if (!serve(id, connection, bytes) || bytes.empty()) return;
    if (connection.later == 0) waiting_.push_back(id);
  }
  connection.ahead.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // A client that sends so much without waiting for an answer is not a client of ours.
  if (connection.ahead.size() > limits::kHttpAheadBytes) connections_.erase(found);
}

bool HttpServer::serve(Id id, Connection& connection, http::Bytes& bytes) {
  using Step = http::RequestReader::Step;
  while (!bytes.empty()) {
    if (left_ == 0 || connection.later != 0) return true;
    const Step step = connection.reader.next(bytes);
    if (step == Step::kNeedMore) return true;
    --left_;
    plan_turn();
    wait_for_more(connection);
    http::Response response;
    bool is_head = false;
    if (step == Step::kRefused) {
      response = http::plain(connection.reader.refusal().status, connection.reader.refusal().text);
      response.keep_alive = false;
    } else {
      const http::Request& request = connection.reader.request();
      http::Reply reply = (connection.answer ? connection.answer : answer_)(request, connection.peer_address);
      const auto* later = std::get_if<http::Later>(&reply);
      if (later != nullptr && !waits_for_too_many()) {
        await(id, connection, *later, request.keep_alive);
        continue;
      }
      response = later != nullptr ? http::plain(503, "too many wait for such an answer; try again later")
                                  : std::get<http::Response>(std::move(reply));
      response.keep_alive = response.keep_alive && request.keep_alive;
      is_head = request.method == http::Method::kHead;
    }
    write(connection, response, is_head);
    if (!response.keep_alive) {
      part(id);
      return false;
    }
    if (connection.stream->held_bytes() > limits::kHttpUnreadBytes) {
      connections_.erase(id);
      return false;
    }
  }
  return true;
}

bool HttpServer::waits_for_too_many() const {
  const auto waits = [](const auto& entry) { return entry.second.later != 0; };
  return static_cast<std::size_t>(std::ranges::count_if(connections_, waits)) >= limits::kHttpLater;
}

// The answer may come within the call, while the connection is at work.
void HttpServer::await(Id id, Connection& connection, const http::Later& later, bool keep_alive) {
  connection.later = ++last_later_;
  connection.later_keeps_alive = keep_alive;
  connection.until_ms = connection.at_most_until_ms = loop_.now_ms() + limits::kHttpLaterMs;
  later.begin([this, id, number = connection.later, is_here = std::weak_ptr(is_here_)](http::Response response) {
    if (is_here.expired()) return;
    came_later_.push_back({id, number, std::move(response)});
    later_.start(0, [this] { write_later(); });
  });
}

void HttpServer::write_later() {
  for (CameLater& came : std::exchange(came_later_, {})) {
    const auto found = connections_.find(came.id);
    if (found == connections_.end() || found->second.later != came.number) continue;
    Connection& connection = found->second;
    connection.later = 0;
    came.response.keep_alive = came.response.keep_alive && connection.later_keeps_alive;
    wait_for_more(connection);
    write(connection, came.response, false);
    if (!came.response.keep_alive) {
      part(came.id);
    } else if (!connection.ahead.empty()) {
      waiting_.push_back(came.id);
      plan_turn();
    }
  }
}

void HttpServer::plan_turn() {
  if (!std::exchange(turn_is_over_, true)) turn_.start(kTurnMs, [this] { begin_turn(); });
}

void HttpServer::wait_for_more(Connection& connection) {
  connection.until_ms = loop_.now_ms() + limits::kHttpIdleMs;
  connection.at_most_until_ms = loop_.now_ms() + limits::kHttpTakesMs;
}

bool HttpServer::is_late(Connection& connection) {
  const std::size_t before = std::exchange(connection.untaken, connection.stream->untaken_bytes());
  if (connection.later == 0 && connection.untaken > 0 && connection.untaken < before) {
    connection.until_ms = std::min(loop_.now_ms() + limits::kHttpIdleMs, connection.at_most_until_ms);
  }
  return connection.until_ms <= loop_.now_ms();
}

void HttpServer::write(Connection& connection, const http::Response& response, bool is_head) {
  ++answered_[response.status];
  connection.stream->write(http::bytes_of(response, is_head));
}

// The peer has closed its side. If requests wait for another turn, or answers for the kernel, the deadline ends the
// connection.
void HttpServer::end(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  found->second.ended = true;
  if (found->second.ahead.empty() && found->second.stream->unsent_bytes() == 0) connections_.erase(found);
}

void HttpServer::part(Id id) {
  const auto found = connections_.find(id);
  std::unique_ptr<Stream> stream = std::move(found->second.stream);
  const bool ended = found->second.ended;
  connections_.erase(found);
  if (!ended || stream->unsent_bytes() > 0) lingering_.part(std::move(stream));
}

void HttpServer::begin_turn() {
  left_ = limits::kHttpRequestsPerTurn;
  turn_is_over_ = false;
  while (!waiting_.empty() && left_ > 0) {
    const Id id = waiting_.front();
    waiting_.pop_front();
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    Connection& connection = found->second;
    const std::string ahead = std::exchange(connection.ahead, {});
    http::Bytes rest = bytes_of(ahead);
    if (!serve(id, connection, rest)) continue;
    if (!rest.empty()) {
      connection.ahead.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
      if (connection.later == 0) waiting_.push_back(id);
    } else if (connection.ended) {
      end(id);
    }
  }
}

void HttpServer::close_late() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    at = is_late(at->second) ? connections_.erase(at) : std::next(at);
  }
  if (!connections_.empty()) deadlines_.start(kLookMs, [this] { close_late(); });
}

}  // namespace elastic::net
