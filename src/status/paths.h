#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/status/snapshot.h"

// Which pages are served at which paths, and who may see them.
namespace elastic::status {

enum class Page : std::uint8_t { kHealth, kReady, kStatus, kMetrics };

// The page of "/healthz", "/readyz", "/status" or "/metrics"; none for another path.
std::optional<Page> page_at(std::string_view path);
// The answer for another path.
inline constexpr std::string_view kNoSuchPage = "not found; elastic-run serves /healthz, /readyz, /status and /metrics";

// Whether the header Authorization has the token ("Bearer TOKEN"), which is not empty. The time that this takes does
// not depend on where they differ.
bool has_token(std::string_view authorization, std::string_view token);
inline constexpr std::string_view kTokenWrong =
    "this is not the job's status key; elastic-run --status-key prints it where the job's secret is (ELASTIC_RUN_TOKEN "
    "or "
    "token_file); send it as Authorization: Bearer KEY, or nothing for counts alone";

// The answer of /readyz: 200, or 503 with the reason.
struct Readiness {
  bool ready = false;
  std::string line = {};
};
Readiness readiness(const std::optional<Node>& node);

}  // namespace elastic::status
