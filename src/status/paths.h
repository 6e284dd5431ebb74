#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/status/snapshot.h"

// What is served where, and to whom.
namespace elastic::status {

enum class Page : std::uint8_t { kHealth, kReady, kStatus, kMetrics };

// Of "/healthz", "/readyz", "/status", "/metrics"; nothing for another path.
std::optional<Page> page_at(std::string_view path);
// What is said of another path.
inline constexpr std::string_view kNoSuchPage =
    "there is nothing here; elastic-run serves /healthz, /readyz, /status and /metrics";

// Whether the header Authorization has the token ("Bearer TOKEN"), which is not empty. In a time that says nothing of
// where they differ.
bool has_token(std::string_view authorization, std::string_view token);
inline constexpr std::string_view kTokenWrong =
    "this is not the job's status key; elastic-run --status-key prints it where the job's secret is (ELASTIC_RUN_TOKEN "
    "or "
    "token_file); send it as Authorization: Bearer KEY, or nothing for counts alone";

// /readyz: 200, or 503 with the reason.
struct Readiness {
  bool ready = false;
  std::string line = {};
};
Readiness readiness(const std::optional<Node>& node);

}  // namespace elastic::status
