#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Functions on numeric addresses as text (inet_ntop's form); none needs a socket.
namespace elastic {

inline constexpr const char* kLoopback = "127.0.0.1";

// "::ffff:10.0.0.1" (how a socket for both families shows an IPv4 peer) -> "10.0.0.1"; others as they are.
std::string without_mapping(std::string_view address);

// Whether it is one of the addresses by which a host reaches itself: 127.0.0.0/8 and ::1, mapped ones too.
// Must not be called for names, such as "127.example".
bool is_loopback(std::string_view address);

// Whether it is 0.0.0.0 or ::, which stand for all addresses of the host itself.
bool is_unspecified(std::string_view address);

// The one form of an address: no mapping, no scope ("fe80::1%eth0"), small letters.
std::string plain_address(std::string_view address);

// Whether both are one address: mapping and scope ("fe80::1%eth0") aside.
bool same_address(std::string_view left, std::string_view right);

// A host, by name or address, and a port: "node0:29400", "[::1]:29400". The host is made printable.
std::string with_port(std::string_view host, std::uint16_t port);

}  // namespace elastic
