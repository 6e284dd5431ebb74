#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "rendezvous/protocol/messages.h"

// What is said in more than one place to nodes that are not let in, or not any more.
namespace elastic::coordinator {

// When to try again where a job of the same name is ending.
inline constexpr std::int64_t kTryAgainMs = 500;

inline protocol::Rejected job_is_ending() {
  return {protocol::Rejected::Why::kJobEnding,
          "a job of this name is ending; it can be started again when that has ended", kTryAgainMs};
}

inline protocol::Rejected is_excluded(std::string why) {
  return {protocol::Rejected::Why::kExcluded, std::move(why), {}};
}

}  // namespace elastic::coordinator
