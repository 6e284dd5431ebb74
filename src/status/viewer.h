#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/status/snapshot.h"

// Which pages are served at which paths, and who may see which part of a snapshot.
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

enum class View : std::uint8_t {
  kAll,
  kCounts,   // counts and states: counts_only()
  kRefused,  // a token was sent, and it is not the job's
};

struct AccessRules {
  std::string key = {};   // the key made of the job's secret, which clients send; empty: the job has none
  bool are_open = false;  // everybody may see everything
};

// What a client at this address (empty: not known) may see that sent this header Authorization (empty: none).
// If the job has a secret, clients that send its key may see everything; otherwise clients on this host.
View view_of(const AccessRules& access, std::string_view authorization, std::string_view peer_address);

// Whether a client with this view may be told where the coordinator is. Where the job has no secret every client may,
// since a stranger who speaks the agents' protocol is led there, too; else a client that may see everything.
bool may_be_led(const AccessRules& access, View view);

// Returns the snapshot without host names, addresses, process ids and texts. It copies named members only, so that a
// member that is added to Snapshot is left out until it is added there, too.
Snapshot counts_only(const Snapshot& snapshot);

}  // namespace elastic::status
