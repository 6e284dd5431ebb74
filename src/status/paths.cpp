#include "src/status/paths.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/text.h"

namespace elastic::status {
namespace {

constexpr std::array<std::pair<std::string_view, Page>, 4> kPages = {
    {{"/healthz", Page::kHealth}, {"/readyz", Page::kReady}, {"/status", Page::kStatus}, {"/metrics", Page::kMetrics}}};

constexpr std::string_view kScheme = "bearer ";

// Compares every byte that was sent, so that the time does not show where they differ.
bool is_same(std::string_view sent, std::string_view token) {
  unsigned differs = sent.size() == token.size() ? 0 : 1;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    differs |= static_cast<unsigned>(static_cast<unsigned char>(sent[i]) ^
                                     static_cast<unsigned char>(token[i % token.size()]));
  }
  return differs == 0;
}

}  // namespace

std::optional<Page> page_at(std::string_view path) {
  const auto found = std::ranges::find(kPages, path, &std::pair<std::string_view, Page>::first);
  if (found == kPages.end()) return {};
  return found->second;
}

bool has_token(std::string_view authorization, std::string_view token) {
  if (token.empty()) return false;
  if (lower(authorization.substr(0, kScheme.size())) != kScheme) return false;
  return is_same(trim(authorization.substr(kScheme.size())), token);
}

Readiness readiness(const std::optional<Node>& node) {
  if (!node) return {true, "the coordinator listens"};
  if (node->ready()) return {true, format("the workers of round {} run", node->round.value_or(0))};
  if (node->waits_for.empty()) return {false, std::string(name_of(node->activity))};
  return {false, format("{}: {}", name_of(node->activity), printable(node->waits_for, 1000))};
}

}  // namespace elastic::status
