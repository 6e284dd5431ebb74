#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "rendezvous/protocol/messages.h"
#include "src/base/text.h"

// Rejections that are sent from more than one place.
namespace elastic::coordinator {

// How long a node waits before it tries again while a job of the same name is ending.
inline constexpr std::int64_t kTryAgainMs = 500;

inline protocol::Rejected job_is_ending() {
  return {protocol::Rejected::Why::kJobEnding,
          "a job of this name is ending; it can be started again when that has ended", kTryAgainMs};
}

// Why a node is quarantined, as a clause.
inline constexpr const char* kLostTooOften = "it was lost too often";

inline protocol::Rejected is_quarantined(std::int64_t for_ms) {
  return {protocol::Rejected::Why::kQuarantined,
          format("{} and is kept out for another {} s", kLostTooOften, for_ms / 1000), for_ms};
}

inline protocol::Rejected is_evicted(std::string why) {
  return {protocol::Rejected::Why::kEvicted, std::move(why), {}};
}

}  // namespace elastic::coordinator
