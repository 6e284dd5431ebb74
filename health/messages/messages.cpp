#include "health/messages/messages.h"

#include <utility>

#include "src/base/json.h"
#include "src/base/json_archive.h"

namespace elastic::health {
namespace {

// Bounds of a text that another node wrote. No message comes near them.
constexpr std::size_t kMostLevels = 4;
constexpr std::size_t kMostMembers = 16;

std::optional<Json> read(const std::string& text) {
  if (!json_over_bounds(text, kMostLevels, kMostMembers).empty()) return {};
  auto json = Json::parse(text, "the check");
  if (!json || json->as_object() == nullptr) return {};
  return std::move(*json);
}

template <class Message>
std::string dumped(const Message& message) {
  return write_json(message, JsonForm::kForgiving).dump();
}

template <class Message>
std::optional<Message> message_in(const std::optional<Json>& json) {
  Message message;
  if (!json || !read_json(*json, message, JsonForm::kForgiving).empty()) return {};
  return message;
}

}  // namespace

std::string text_of(const SelfResult& result) { return dumped(result); }
std::string text_of(const PairOrders& orders) { return dumped(orders); }
std::string text_of(const PairResults& results) { return dumped(results); }
std::string text_of(const RingOrder& order) { return dumped(order); }
std::string text_of(const RingResult& result) { return dumped(result); }

std::optional<CheckOrder> read_check_order(const std::string& text) {
  const auto json = read(text);
  if (auto ring = message_in<RingOrder>(json); ring && ring->place < ring->members) return std::move(*ring);
  if (auto pairs = message_in<PairOrders>(json)) return std::move(*pairs);
  return {};
}

std::optional<CheckResult> read_check_result(std::uint32_t phase, const std::string& text) {
  const auto json = read(text);
  if (phase == kSelfPhase) {
    if (auto self = message_in<SelfResult>(json)) return std::move(*self);
    return {};
  }
  if (auto ring = phase == kRingPhase ? message_in<RingResult>(json) : std::nullopt) {
    if (ring->ms == 0) ring->ms.reset();
    return std::move(*ring);
  }
  if (auto pairs = message_in<PairResults>(json)) return std::move(*pairs);
  return {};
}

std::string text_of_failed(const CheckOrder& order, const std::string& why) {
  const auto* pairs = std::get_if<PairOrders>(&order);
  if (pairs == nullptr) return text_of(RingResult{.why_not = why});
  PairResults results;
  for (const PairOrder& test : pairs->tests) results.tests.push_back({.with = test.with, .why_not = why});
  return text_of(results);
}

}  // namespace elastic::health
