#include "src/net/http/response.h"

#include <doctest/doctest.h>

#include "src/net/http/reader.h"

using namespace elastic::net::http;

namespace {

Bytes bytes(const std::string& text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

}  // namespace

TEST_CASE("an answer says its length, its type and whose it is, and one to HEAD has no body") {
  const Response response = plain(200, "all is well");
  CHECK(bytes_of(response, false) ==
        "HTTP/1.1 200 OK\r\nServer: elastic-run\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 12\r\n"
        "Cache-Control: no-store\r\n\r\nall is well\n");
  CHECK(bytes_of(response, true).ends_with("Content-Length: 12\r\nCache-Control: no-store\r\n\r\n"));
}

TEST_CASE("an answer says what belongs to its status") {
  CHECK(bytes_of(plain(401, "no"), false).contains("WWW-Authenticate: Bearer realm=\"elastic-run\"\r\n"));
  CHECK(bytes_of(plain(405, "no"), false).contains("Allow: GET, HEAD\r\n"));
  Response order = plain(405, "no");
  order.allow = "POST";
  CHECK(bytes_of(order, false).contains("Allow: POST\r\n"));
  CHECK(bytes_of(plain(503, "no"), false).contains("Retry-After: 1\r\n"));
  Response last = plain(400, "no");
  last.keep_alive = false;
  CHECK(bytes_of(last, false).contains("Connection: close\r\n"));
}

TEST_CASE("a redirect says where the same is to be asked, and is read as it was written") {
  const std::string answer = bytes_of(redirect("http://[fd00::2]:40123/status?job=a", "it is there"), false);
  CHECK(answer.starts_with("HTTP/1.1 307 Temporary Redirect\r\n"));
  ResponseReader reader;
  REQUIRE(reader.read_bytes(bytes(answer)) == ResponseReader::Step::kComplete);
  CHECK(reader.status() == 307);
  CHECK(reader.location() == "http://[fd00::2]:40123/status?job=a");
  CHECK(reader.body() == "it is there\n");
}

TEST_CASE("our own requests and answers are read as they were written") {
  const std::string asked = get_request("host0:29400", "/status", "s3cret");
  RequestReader requests;
  Bytes rest = bytes(asked);
  REQUIRE(requests.next(rest) == RequestReader::Step::kRequest);
  CHECK(requests.request().path == "/status");
  CHECK(requests.request().authorization == "Bearer s3cret");
  CHECK(!requests.request().keep_alive);

  const std::string ordered = post_request("host0:29400", "/drain?node=3", "12ab");
  rest = bytes(ordered);
  RequestReader orders;
  REQUIRE(orders.next(rest) == RequestReader::Step::kRequest);
  CHECK(orders.request().method == Method::kPost);
  CHECK(orders.request().target == "/drain?node=3");
  CHECK(orders.request().order == "12ab");
  CHECK(!orders.request().keep_alive);

  const std::string answered = bytes_of(plain(404, "nothing"), false);
  ResponseReader answers;
  REQUIRE(answers.read_bytes(bytes(answered)) == ResponseReader::Step::kComplete);
  CHECK(answers.status() == 404);
  CHECK(answers.server() == kServerName);
  CHECK(answers.body() == "nothing\n");
}

TEST_CASE("every status that is given has its reason") {
  for (const int status : {200, 400, 401, 403, 404, 405, 409, 414, 431, 503}) CHECK(!reason_of(status).empty());
}
