#include "src/net/http/reader.h"

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include "src/base/test_random.h"
#include "src/base/text.h"
#include "src/net/limits.h"

using namespace elastic;
using namespace elastic::net::http;
using Step = RequestReader::Step;

namespace {

Bytes bytes(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

Step step_of(RequestReader& reader, std::string_view text) {
  Bytes rest = bytes(text);
  return reader.next(rest);
}

// The status with which a text is refused; 200 if it is accepted.
int refused(std::string_view text) {
  RequestReader reader;
  if (step_of(reader, text) != Step::kRefused) return 200;
  CHECK(!reader.refusal().text.empty());
  CHECK(step_of(reader, "GET / HTTP/1.1\r\n\r\n") == Step::kRefused);  // nothing more is read
  return reader.refusal().status;
}

}  // namespace

TEST_CASE("a request is read whole, byte by byte, and behind another one") {
  const std::string_view text =
      "GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\naUTHORIZATION: Bearer abc\r\n\r\nHEAD /healthz HTTP/1.1\r\n\r\n";
  for (const std::size_t piece : {text.size(), std::size_t{1}, std::size_t{7}}) {
    RequestReader reader;
    std::vector<Request> found;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      Bytes rest = bytes(text.substr(at, piece));
      while (reader.next(rest) == Step::kRequest) found.push_back(reader.request());
      CHECK(rest.empty());
    }
    REQUIRE(found.size() == 2);
    CHECK(found[0].path == "/metrics");
    CHECK(found[0].authorization == "Bearer abc");
    CHECK(found[0].query == "x=1");
    CHECK(found[0].target == "/metrics?x=1");
    CHECK(found[0].method == Method::kGet);
    CHECK(found[0].keep_alive);
    CHECK(found[1].path == "/healthz");
    CHECK(found[1].query.empty());
    CHECK(found[1].method == Method::kHead);
    CHECK(found[1].authorization.empty());
  }
}

TEST_CASE("a proxy's form of a target is a path, too") {
  RequestReader reader;
  REQUIRE(step_of(reader, "GET http://host:1/status?q HTTP/1.1\r\n\r\n") == Step::kRequest);
  CHECK(reader.request().path == "/status");
}

TEST_CASE("HTTP/1.0 and Connection: close end the connection") {
  RequestReader reader;
  REQUIRE(step_of(reader, "GET / HTTP/1.0\r\n\r\n") == Step::kRequest);
  CHECK(!reader.request().keep_alive);
  RequestReader other;
  REQUIRE(step_of(other, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n") == Step::kRequest);
  CHECK(!other.request().keep_alive);
}

TEST_CASE(
    "an order is read with its query and the headers that it is judged by, and those of one request are not the "
    "next's") {
  const std::string_view text =
      "POST /drain?node=a%20b HTTP/1.1\r\nElastic-Run-Order: 12ab\r\nORIGIN: http://page\r\nContent-Length: 0\r\n\r\n"
      "POST /stop HTTP/1.1\r\n\r\n";
  RequestReader reader;
  Bytes rest = bytes(text);
  REQUIRE(reader.next(rest) == Step::kRequest);
  CHECK(reader.request().method == Method::kPost);
  CHECK(reader.request().path == "/drain");
  CHECK(reader.request().target == "/drain?node=a%20b");
  CHECK(reader.request().order == "12ab");
  CHECK(reader.request().origin == "http://page");
  REQUIRE(reader.next(rest) == Step::kRequest);
  CHECK(reader.request().path == "/stop");
  CHECK(reader.request().order.empty());
  CHECK(reader.request().origin.empty());
}

TEST_CASE("what is not GET, HEAD or POST is refused by its name") {
  CHECK(refused("PUT /status HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello") == 405);
  RequestReader reader;
  REQUIRE(step_of(reader, "DELETE / HTTP/1.1\r\n\r\n") == Step::kRefused);
  CHECK(reader.refusal().text.starts_with("DELETE is not supported"));
}

TEST_CASE("a body is refused, whether its length is told or not") {
  CHECK(refused("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello") == 400);
  CHECK(refused("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") == 400);
  CHECK(refused("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello") == 400);
  CHECK(refused("GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n") == 200);
}

TEST_CASE("a head that is too long is refused, and one of the greatest length is not") {
  const std::string beginning = "GET / HTTP/1.1\r\nX: ";
  const std::string end = "\r\n\r\n";
  const std::size_t room = limits::kHttpHeadBytes - beginning.size() - end.size();
  CHECK(refused(beginning + std::string(room, 'a') + end) == 200);
  CHECK(refused(beginning + std::string(room + 1, 'a') + end) == 431);
  CHECK(refused("GET /" + std::string(limits::kHttpTargetBytes, 'a') + " HTTP/1.1\r\n\r\n") == 414);
  CHECK(refused("GET /" + std::string(limits::kHttpTargetBytes - 1, 'a') + " HTTP/1.1\r\n\r\n") == 200);
}

TEST_CASE("what is no HTTP/1 is refused") {
  CHECK(refused("hello, world\r\n") == 400);
  CHECK(refused("GET / FTP/1.1\r\n\r\n") == 400);
  CHECK(refused("GET * HTTP/1.1\r\n\r\n") == 400);
  CHECK(refused(std::string_view("GET /\0 HTTP/1.1\r\n\r\n", 19)) == 400);
  CHECK(refused("GET / HTTP/1.1\r\n\x01: x\r\n\r\n") == 400);
}

TEST_CASE("an answer is read by its length, in chunks, and to the end of the connection") {
  const auto read = [](std::string_view text, bool ends) {
    ResponseReader reader;
    ResponseReader::Step step = ResponseReader::Step::kNeedMore;
    for (const char& byte : text) step = reader.read_bytes(bytes({&byte, 1}));
    if (ends) step = reader.end();
    CHECK(step == ResponseReader::Step::kComplete);
    CHECK(reader.status() == 200);
    return reader.body();
  };
  CHECK(read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", false) == "hi");
  CHECK(read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", false) == "hi");
  CHECK(read("HTTP/1.0 200 OK\r\n\r\nhi", true) == "hi");
}

TEST_CASE("an answer that is cut off or of another protocol is named") {
  ResponseReader cut;
  CHECK(cut.read_bytes(bytes("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi")) == ResponseReader::Step::kNeedMore);
  CHECK(cut.end() == ResponseReader::Step::kRefused);
  CHECK(!cut.problem().empty());
  ResponseReader other;
  CHECK(other.read_bytes(bytes("SSH-2.0-x\r\n")) == ResponseReader::Step::kRefused);
  CHECK(other.problem().contains("not HTTP/1.1"));
}

namespace {

// Describes how the reader handles a text in pieces of at most so many bytes: each request, and how it ends.
std::string told_of(std::string_view text, std::size_t piece) {
  RequestReader reader;
  std::string told;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    Bytes rest = bytes(text.substr(at, piece));
    Step step = reader.next(rest);
    for (; step == Step::kRequest; step = reader.next(rest)) {
      told += format("{} {} {} {}\n", static_cast<int>(reader.request().method), reader.request().path,
                     reader.request().authorization, reader.request().keep_alive);
    }
    if (step == Step::kRefused) return told + format("refused {}", reader.refusal().status);
    CHECK(rest.empty());
  }
  return told;
}

}  // namespace

TEST_CASE("requests with random mistakes are read alike in whatever pieces they come") {
  TestRandom random(7);
  const auto below = [&](std::size_t most) { return static_cast<std::size_t>(random() % most); };
  const std::string good =
      "GET /metrics?a=b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\nX: 1\r\n y\r\n\r\n"
      "HEAD /status HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET http://h/healthz HTTP/1.1\r\n"
      "Transfer-Encoding: chunked\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n";
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (std::size_t mistakes = below(4); mistakes > 0; --mistakes) {
      const std::size_t at = below(text.size());
      switch (below(3)) {
        case 0: text[at] = static_cast<char>(below(256)); break;
        case 1: text.erase(at, below(5)); break;
        default: text.insert(at, 1, static_cast<char>(below(128)));
      }
    }
    CAPTURE(text);
    const std::string whole = told_of(text, text.size());
    CHECK(told_of(text, 1) == whole);
    CHECK(told_of(text, 1 + below(40)) == whole);
  }
}
