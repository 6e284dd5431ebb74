#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace elastic {

// How a job ended: all workers succeeded; something failed; a user or a scheduler asked for the end by a signal. The
// numbers go over the wire (docs/agent-protocol.md).
enum class Outcome : std::uint8_t { kSucceeded, kFailed, kStopped };
inline constexpr std::array<std::string_view, 3> kOutcomeNames = {"succeeded", "failed", "stopped"};

constexpr const auto& names_of(Outcome) { return kOutcomeNames; }
constexpr std::string_view name_of(Outcome outcome) { return kOutcomeNames.at(static_cast<std::size_t>(outcome)); }

}  // namespace elastic
