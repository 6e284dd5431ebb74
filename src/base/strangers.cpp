#include "src/base/strangers.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic {
namespace {

constexpr std::size_t kQuotedBytes = 16;

// The first bytes of protocols, in the order in which they are tried, which matters for short reads.
constexpr std::pair<std::string_view, Stranger> kBeginnings[] = {
    {"GET ", Stranger::kHttp},
    {"HEAD ", Stranger::kHttp},
    {"POST ", Stranger::kHttp},
    {"PUT ", Stranger::kHttp},
    {"PATCH ", Stranger::kHttp},
    {"DELETE ", Stranger::kHttp},
    {"OPTIONS ", Stranger::kHttp},
    {"TRACE ", Stranger::kHttp},
    {"CONNECT ", Stranger::kHttp},
    {"HTTP/", Stranger::kHttpAnswer},
    {"PRI * ", Stranger::kHttp2},
    {"\x16\x03", Stranger::kTls},
    {"\x15\x03", Stranger::kTls},
    {"SSH-", Stranger::kSsh},
    {std::string_view("\x00\xCE\xF7\x85\x3C", 5), Stranger::kTcpStore},
    {"-ERR ", Stranger::kRedis},
    {"-NOAUTH ", Stranger::kRedis},
    {"-DENIED ", Stranger::kRedis},
    {"+PONG", Stranger::kRedis},
    {"+OK\r\n", Stranger::kRedis},
};

// A Redis array begins with an asterisk and its length.
bool may_be_redis_request(std::string_view seen) {
  return seen[0] == '*' && (seen.size() == 1 || (seen[1] >= '1' && seen[1] <= '9'));
}

// Recognises the head of the frame that an HTTP/2 server sends first: u24 length, SETTINGS (4), no flags, stream 0; six
// bytes a setting. The head must be complete, for many protocols begin with zeros.
bool is_http2_settings(std::string_view seen) {
  constexpr std::size_t kHeadBytes = 9;
  constexpr std::string_view kAfterLength("\x04\x00\x00\x00\x00\x00", 6);
  if (seen.size() < kHeadBytes || seen[0] != 0 || seen[1] != 0) return false;
  return static_cast<unsigned char>(seen[2]) % 6 == 0 && seen.substr(3, kAfterLength.size()) == kAfterLength;
}

}  // namespace

std::optional<Stranger> recognised(std::string_view first_bytes) {
  if (first_bytes.empty()) return {};
  if (is_http2_settings(first_bytes)) return Stranger::kHttp2;
  if (may_be_redis_request(first_bytes)) return Stranger::kRedis;
  for (const auto& [word, stranger] : kBeginnings) {
    if (first_bytes.starts_with(word) || word.starts_with(first_bytes)) return stranger;
  }
  return {};
}

std::string_view name_of(Stranger stranger) {
  switch (stranger) {
    case Stranger::kHttp:
    case Stranger::kHttpAnswer: return "HTTP";
    case Stranger::kHttp2: return "HTTP/2 (gRPC, etcd)";
    case Stranger::kTls: return "TLS";
    case Stranger::kSsh: return "SSH";
    case Stranger::kTcpStore: return "PyTorch's TCPStore protocol";
    case Stranger::kRedis: return "Redis's protocol";
  }
  ELASTIC_CHECK(false);
  return {};
}

std::string first_bytes_text(std::string_view first_bytes) {
  std::string text = "first bytes";
  for (const char byte : first_bytes.substr(0, kQuotedBytes)) {
    text += format(" {:02x}", static_cast<unsigned char>(byte));
  }
  if (first_bytes.size() > kQuotedBytes) text += " ...";
  return text;
}

}  // namespace elastic
