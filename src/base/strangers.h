#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace elastic {

// Foreign protocols that clients speak at our ports, or servers at an address that should have been ours.
enum class Stranger : std::uint8_t {
  kHttp,  // a request
  kHttpAnswer,
  kHttp2,  // a client's preface or a server's settings: gRPC, etcd
  kTls,    // a client's hello or a server's alert
  kSsh,
  kTcpStore,  // a client of PyTorch's TCPStore
  kRedis,     // a request or an answer
};

// The protocol of the first bytes that the other side has sent; nothing where it is none of these. A short first
// read may be the beginning of a longer word. Any bytes are allowed.
std::optional<Stranger> recognised(std::string_view first_bytes);

// The protocol's name for messages, "HTTP".
std::string_view name_of(Stranger stranger);

// "first bytes 03 05 00 00", at most 16 of them, for messages about an unknown protocol.
std::string first_bytes_text(std::string_view first_bytes);

}  // namespace elastic
