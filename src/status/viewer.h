#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/status/snapshot.h"

// Decides who may see which part of a snapshot.
namespace elastic::status {

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
