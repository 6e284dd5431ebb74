#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

// Reads HTTP/1.1 as far as status, metrics and orders need it: GET, HEAD and POST without a body. http-parser does the
// work.
namespace elastic::net::http {

using Bytes = std::span<const std::uint8_t>;

enum class Method : std::uint8_t { kGet, kHead, kPost };

struct Request {
  Method method = Method::kGet;
  std::string path = {};    // "/metrics", without the query
  std::string query = {};   // what follows the "?", as it was sent
  std::string target = {};  // path and query, as they were sent
  // The values of headers; empty: there was none.
  std::string authorization = {};
  std::string order = {};   // Elastic-Run-Order
  std::string origin = {};  // Origin, which browsers send
  bool keep_alive = true;   // another request may follow
};

// Why a request is refused. Nothing that follows it can be read.
struct Refusal {
  int status = 400;
  std::string text = {};  // a sentence: what is wrong, and what to do
};

// Turns a connection's bytes, in whatever pieces they come, into requests.
class RequestReader {
 public:
  enum class Step : std::uint8_t {
    kNeedMore,  // all bytes were read, and no request is complete
    kRequest,   // request() is complete; the bytes that are left may contain more
    kRefused,   // refusal() says why; next() returns nothing else from now on
  };

  RequestReader();
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Removes bytes from the front of `bytes` up to the end of one request. Refuses a head of more than
  // limits::kHttpHeadBytes (431), a target of more than kHttpTargetBytes (414), other methods (405), and bodies and
  // whatever is not HTTP/1 (400).
  Step next(Bytes& bytes);
  const Request& request() const;
  const Refusal& refusal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads the answer to one request of ours.
class ResponseReader {
 public:
  enum class Step : std::uint8_t { kNeedMore, kComplete, kRefused };

  // Of an answer whose body has at most limits::kHttpAnswerBytes, or this many bytes.
  ResponseReader();
  explicit ResponseReader(std::size_t most_body_bytes);
  ~ResponseReader();
  ResponseReader(const ResponseReader&) = delete;
  ResponseReader& operator=(const ResponseReader&) = delete;

  // Reads bytes of the other side. Refused: they are not an HTTP/1 answer, or too long.
  Step read_bytes(Bytes bytes);
  // The other side has closed the connection, which may be the end of its answer.
  Step end();

  int status() const;
  // The value of the header Server; empty without one.
  const std::string& server() const;
  // The same of the header Location.
  const std::string& location() const;
  const std::string& body() const;
  // Why it was refused, as a clause.
  const std::string& problem() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace elastic::net::http
