#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "rendezvous/protocol/codec.h"

// Keyed hashes that prove that a side knows the job's secret without sending it. They are libsodium's.
namespace elastic::protocol {

// A key that is derived from a secret of any length; the secret may be empty.
using Key = std::array<std::uint8_t, 32>;
Key key_of(std::string_view secret);

// The key that gives access to a job's status by HTTP, which is not encrypted: 64 hex digits. An eavesdropper can see
// the status, but cannot join the job. Empty for an empty secret.
std::string status_key(std::string_view secret);

// What an operator's order by HTTP has in its header: 64 hex digits, which prove that its sender knows the secret, for
// this challenge and this target alone. An eavesdropper learns nothing that orders anything else, or this again.
std::string order_proof(std::string_view secret, std::string_view challenge, std::string_view target);
// Whether `sent` is that proof. Compares in constant time.
bool proves_order(std::string_view sent, std::string_view secret, std::string_view challenge, std::string_view target);

// The side that proves. A proof of one side is not valid for another.
enum class Side : std::uint8_t { kAgent, kCoordinator, kGuardian };

// The keyed hash of the side's name and the parts, one after another. Parts of variable length must contain their
// length.
Proof prove(const Key& key, Side side, std::initializer_list<Bytes> parts);

// Compares in constant time.
bool same_proof(const Proof& left, const Proof& right);

}  // namespace elastic::protocol
