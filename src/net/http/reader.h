#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

// HTTP/1.1 as far as status and metrics need it: GET and HEAD without a body. http-parser is behind this.
namespace elastic::net::http {

using Bytes = std::span<const std::uint8_t>;

struct Request {
  bool is_head = false;            // HEAD, else GET
  std::string path = {};           // "/metrics", without the query
  std::string authorization = {};  // that header's value; empty: it was not there
  bool keep_alive = true;          // another request may follow
};

// Why a request is not served. Nothing that follows it can be read.
struct Refusal {
  int status = 400;
  std::string text = {};  // a sentence: what is wrong, and what to do
};

// Turns a connection's bytes, in whatever pieces they come, into requests.
class RequestReader {
 public:
  enum class Step : std::uint8_t {
    kNeedMore,  // all bytes are taken and no request is complete
    kRequest,   // request() is complete; there may be more in the bytes that are left
    kRefused,   // refusal() says why; next() has no more to give
  };

  RequestReader();
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Takes bytes from the front of `bytes` up to the end of one request. A head of more than limits::kHttpHeadBytes
  // is refused (431), and so are a longer target than kHttpTargetBytes (414), other methods (405), bodies and what is
  // no HTTP/1 (400).
  Step next(Bytes& bytes);
  const Request& request() const;
  const Refusal& refusal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads the one answer to a request of ours.
class ResponseReader {
 public:
  enum class Step : std::uint8_t { kNeedMore, kComplete, kRefused };

  ResponseReader();
  ~ResponseReader();
  ResponseReader(const ResponseReader&) = delete;
  ResponseReader& operator=(const ResponseReader&) = delete;

  // What the other side has sent. Refused: it is no answer of HTTP/1, or longer than limits::kHttpAnswerBytes.
  Step take(Bytes bytes);
  // It has closed the connection, which may be the end of its answer.
  Step end();

  int status() const;
  // The header Server; empty without one.
  const std::string& server() const;
  const std::string& body() const;
  // Of kRefused, as a clause.
  const std::string& problem() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace elastic::net::http
