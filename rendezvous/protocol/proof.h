#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "rendezvous/protocol/codec.h"

// Keyed hashes that prove the knowledge of a job's secret without showing it. libsodium is behind this.
namespace elastic::protocol {

// Made of a secret of any length, the empty one too.
using Key = std::array<std::uint8_t, 32>;
Key key_of(std::string_view secret);

// What is shown in the place of the secret to see a job's status by HTTP, which is not encrypted: 64 hex digits.
// Whoever reads it there can see the status, and cannot join the job. Empty for an empty secret.
std::string status_key(std::string_view secret);

// Who proves: a proof of one side is none of another.
enum class Side : std::uint8_t { kAgent, kCoordinator, kGuardian };

// The keyed hash of the side's name and the parts, one after another; where they are of no fixed length,
// they say their length themselves.
Proof prove(const Key& key, Side side, std::initializer_list<Bytes> parts);

// In a time that says nothing of where they differ.
bool same_proof(const Proof& left, const Proof& right);

}  // namespace elastic::protocol
