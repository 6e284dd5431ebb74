#pragma once

#include <optional>
#include <string>
#include <utility>

#include "health/messages/messages.h"

// Reads a message of the kind that a test expects. Nothing where the text is something else.
namespace elastic::health {

template <class Kind, class Message>
std::optional<Kind> as(std::optional<Message> message) {
  Kind* kind = message ? std::get_if<Kind>(&*message) : nullptr;
  return kind == nullptr ? std::nullopt : std::optional(std::move(*kind));
}

inline std::optional<PairOrders> read_pair_orders(const std::string& text) {
  return as<PairOrders>(read_check_order(text));
}
inline std::optional<RingOrder> read_ring_order(const std::string& text) {
  return as<RingOrder>(read_check_order(text));
}
inline std::optional<SelfResult> read_self_result(const std::string& text) {
  return as<SelfResult>(read_check_result(kSelfPhase, text));
}
inline std::optional<PairResults> read_pair_results(const std::string& text) {
  return as<PairResults>(read_check_result(kFirstPairsPhase, text));
}
inline std::optional<RingResult> read_ring_result(const std::string& text) {
  return as<RingResult>(read_check_result(kRingPhase, text));
}

}  // namespace elastic::health
