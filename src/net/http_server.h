#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/net/http/reader.h"
#include "src/net/http/response.h"
#include "src/net/lingering_connections.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::net {

// Answers HTTP requests on connections that its owner has accepted. However many come, it answers at most
// limits::kHttpRequestsPerTurn in a millisecond, so that everything else on the loop has its turn in between.
class HttpServer {
 public:
  // Gets the request and the peer's address, as Stream::peer_address(). Must not block. The response's keep_alive
  // says whether another request is allowed. An answer that comes later has limits::kHttpLaterMs; until then further
  // requests of its connection wait, and those of others do not. limits::kHttpLater such answers may be awaited.
  using Answer = std::function<http::Reply(const http::Request&, const std::string&)>;

  HttpServer(Loop& loop, Answer answer);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Serves a connection of which these bytes have been read. If limits::kHttpConnections are open, it is answered
  // 503 and closed. Its requests are answered by `answer`; empty: as those of all others.
  void adopt(std::unique_ptr<Stream> stream, std::span<const std::uint8_t> bytes, Answer answer = {});

  std::size_t connections() const { return connections_.size(); }
  // The number of answers with each status so far.
  const std::map<int, std::uint64_t>& answered() const { return answered_; }

 private:
  struct Connection {
    std::unique_ptr<Stream> stream;
    Answer answer;             // empty: that of the server
    std::string peer_address;  // read at the beginning, for it cannot be read once the peer is gone
    http::RequestReader reader;
    std::string ahead;          // bytes that wait because this turn's requests have been answered
    std::int64_t until_ms = 0;  // until then a request must be complete, or the peer must take some of its answers
    std::int64_t at_most_until_ms = 0;  // the end of that, even if the peer goes on taking
    std::size_t untaken = 0;            // bytes of answers that it had not taken at the last check
    bool ended = false;                 // the peer has closed it
    std::uint64_t later = 0;            // the number of the answer that comes later; 0: none does
    bool later_keeps_alive = false;     // another request may follow that one
  };
  using Id = std::uint64_t;
  struct CameLater {
    Id id = 0;
    std::uint64_t number = 0;
    http::Response response;
  };

  void read(Id id, std::span<const std::uint8_t> bytes);
  // Answers requests, as far as this turn allows. False: the connection is gone.
  bool serve(Id id, Connection& connection, http::Bytes& bytes);
  void wait_for_more(Connection& connection);
  void await(Id id, Connection& connection, const http::Later& later, bool keep_alive);
  void write_later();
  bool waits_for_too_many() const;
  void plan_turn();
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
  std::deque<Id> waiting_;     // connections that wait for another turn, in order
  std::size_t left_;           // requests that this turn may still answer
  bool turn_is_over_ = false;  // the timer for the next one runs
  Timer turn_;
  Timer deadlines_;
  std::uint64_t last_later_ = 0;
  std::vector<CameLater> came_later_;
  Timer later_;
  std::shared_ptr<const bool> is_here_ = std::make_shared<const bool>(true);  // answers may come when this has gone
  LingeringConnections lingering_;
  std::map<int, std::uint64_t> answered_;
};

}  // namespace elastic::net
