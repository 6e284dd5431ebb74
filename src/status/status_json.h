#pragma once

#include <string>
#include <string_view>

#include "src/status/snapshot.h"

// /status is one JSON document; docs/observing.md has its schema.
namespace elastic::status {

inline constexpr std::string_view kJsonType = "application/json";
// Raised when a member changes its meaning or is removed; a new member does not change it.
inline constexpr int kStatusFormat = 1;

std::string status_json(const Snapshot& snapshot);

}  // namespace elastic::status
