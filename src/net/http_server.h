#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "src/net/http/reader.h"
#include "src/net/http/response.h"
#include "src/net/lingering_connections.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::net {

// Answers HTTP requests on connections that somebody else has accepted. However many come, it answers
// limits::kHttpRequestsPerTurn at most in a millisecond: everything else on the loop has its turn between.
class HttpServer {
 public:
  // Is told the request and the peer's address, as Stream::peer_address(). Must not wait for anything. Its keep_alive
  // says whether it allows another request.
  using Answer = std::function<http::Response(const http::Request&, const std::string&)>;

  HttpServer(Loop& loop, Answer answer);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Serves a connection of which these bytes have been read. Where limits::kHttpConnections are open it is answered
  // 503 and closed.
  void adopt(std::unique_ptr<Stream> stream, std::span<const std::uint8_t> bytes);

  std::size_t connections() const { return connections_.size(); }
  // How many answers of each status were given so far.
  const std::map<int, std::uint64_t>& answered() const { return answered_; }

 private:
  struct Connection {
    std::unique_ptr<Stream> stream;
    std::string peer_address;  // as long as the peer is there it can be asked
    http::RequestReader reader;
    std::string ahead;          // what has come and is not read yet, since this turn's requests are answered
    std::int64_t until_ms = 0;  // by then a whole request must have come, or the peer have got on with taking answers
    std::int64_t at_most_until_ms = 0;  // whatever it takes until then
    std::size_t untaken = 0;            // of its answers, when it was looked at last
    bool ended = false;                 // by the peer
  };
  using Id = std::uint64_t;

  void read(Id id, std::span<const std::uint8_t> bytes);
  // Answers what has come, as far as this turn allows. False: the connection is gone.
  bool serve(Id id, Connection& connection, http::Bytes& bytes);
  void wait_for_more(Connection& connection);
  bool is_late(Connection& connection);
  void write(Connection& connection, const http::Response& response, bool is_head);
  void end(Id id);
  void part(Id id);
  void begin_turn();
  void close_late();

  Loop& loop_;
  Answer answer_;
  std::map<Id, Connection> connections_;
  Id last_ = 0;
  std::deque<Id> waiting_;     // whose requests another turn answers, in their order
  std::size_t left_;           // requests that this turn may answer still
  bool turn_is_over_ = false;  // the timer for the next one runs
  Timer turn_;
  Timer deadlines_;
  LingeringConnections lingering_;
  std::map<int, std::uint64_t> answered_;
};

}  // namespace elastic::net
