#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace elastic {

// Protocols that are met at a port of ours, or at the end of an address that was meant to be ours.
enum class Stranger : std::uint8_t {
  kHttp,  // a request
  kHttpAnswer,
  kHttp2,  // a client's preface or a server's settings: gRPC, etcd
  kTls,    // a client's hello or a server's alert
  kSsh,
  kTcpStore,  // a client of PyTorch's TCPStore
  kRedis,     // a request or an answer
};

// What the first bytes that the other side sent are taken for; nothing where they are none of these. A short first
// read may be the start of a word. A pure function; the bytes may be any.
std::optional<Stranger> recognised(std::string_view first_bytes);

// "HTTP", for "it speaks ...".
std::string_view name_of(Stranger stranger);

// "first bytes 03 05 00 00", the first 16 of them: for what is not recognised.
std::string first_bytes_text(std::string_view first_bytes);

}  // namespace elastic
