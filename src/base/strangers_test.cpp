#include "src/base/strangers.h"

#include <doctest/doctest.h>

#include <utility>

using namespace elastic;
using namespace std::string_literals;

TEST_CASE("a protocol is recognised by its first bytes, and from the first of them on") {
  const std::pair<std::string, Stranger> met[] = {
      {"GET / HTTP/1.1\r\n\r\n", Stranger::kHttp},
      {"HEAD /x HTTP/1.1\r\n", Stranger::kHttp},
      {"POST /x HTTP/1.1\r\n", Stranger::kHttp},
      {"PUT /x HTTP/1.1\r\n", Stranger::kHttp},
      {"PATCH /x HTTP/1.1\r\n", Stranger::kHttp},
      {"DELETE /x HTTP/1.1\r\n", Stranger::kHttp},
      {"OPTIONS * HTTP/1.1\r\n", Stranger::kHttp},
      {"TRACE / HTTP/1.1\r\n", Stranger::kHttp},
      {"CONNECT host:443 HTTP/1.1\r\n", Stranger::kHttp},
      {"\x16\x03\x01\x02\x00\x01"s, Stranger::kTls},
      {"\x15\x03\x01\x00\x02\x02\x46"s, Stranger::kTls},
      {"SSH-2.0-OpenSSH_9.2\r\n", Stranger::kSsh},
      {"\x00\xCE\xF7\x85\x3C\x0D"s, Stranger::kTcpStore},
      {"*1\r\n$4\r\nPING\r\n", Stranger::kRedis},
      {"-ERR unknown command\r\n", Stranger::kRedis},
      {"-NOAUTH Authentication required.\r\n", Stranger::kRedis},
      {"-DENIED Redis is running in protected mode\r\n", Stranger::kRedis},
      {"+PONG\r\n", Stranger::kRedis},
      {"+OK\r\n", Stranger::kRedis},
  };
  for (const auto& [bytes, stranger] : met) {
    CAPTURE(bytes);
    for (std::size_t size = 1; size <= bytes.size(); ++size) CHECK(recognised(bytes.substr(0, size)) == stranger);
  }
}

TEST_CASE("what begins like others is recognised once it differs from them") {
  CHECK(recognised("H") == Stranger::kHttp);  // it may become HEAD
  CHECK(recognised("HTTP/1.1 400 Bad Request\r\n") == Stranger::kHttpAnswer);
  CHECK(recognised("P") == Stranger::kHttp);
  CHECK(recognised("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == Stranger::kHttp2);
  CHECK(recognised("\x00"s) == Stranger::kTcpStore);
  const std::string settings = "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00"s;
  CHECK(recognised(settings) == Stranger::kHttp2);
  CHECK(recognised(settings.substr(0, 8)) == std::nullopt);
}

TEST_CASE("nothing is recognised in what only begins alike") {
  for (const std::string& bytes : {""s, "hello"s, "GEX"s, "get / HTTP/1.1"s, "SSH_"s, "\x16\x55"s,
                                   "\x00\xCE\xF7\x85\x3D"s, "*x"s, "*0"s, "-E-"s, "+PING"s, "\xFF\x00\x00"s,
                                   "\x8E"
                                   "elastic"s,
                                   "\x00\x00\x05\x04\x00\x00\x00\x00\x00"s, "\x00\x00\x06\x04\x01\x00\x00\x00\x00"s,
                                   "\x00\x00\x06\x05\x00\x00\x00\x00\x00"s}) {
    CAPTURE(bytes);
    CHECK(recognised(bytes) == std::nullopt);
  }
}

TEST_CASE("what is not recognised is quoted, sixteen bytes at most") {
  CHECK(first_bytes_text("\x03\x00\xFF"s) == "first bytes 03 00 ff");
  CHECK(first_bytes_text("0123456789abcdef") == "first bytes 30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66");
  CHECK(first_bytes_text("0123456789abcdefg").ends_with(" 65 66 ..."));
}

TEST_CASE("each protocol has a name for a message") {
  CHECK(name_of(Stranger::kHttpAnswer) == "HTTP");
  CHECK(name_of(Stranger::kHttp2) == "HTTP/2 (gRPC, etcd)");
  CHECK(name_of(Stranger::kTcpStore) == "PyTorch's TCPStore protocol");
}
