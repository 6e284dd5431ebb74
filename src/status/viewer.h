#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/status/snapshot.h"

// Who sees what of a snapshot.
namespace elastic::status {

enum class View : std::uint8_t {
  kAll,
  kCounts,   // counts and states: counts_only()
  kRefused,  // a token was sent, and it is not the job's
};

struct Doors {
  std::string key = {};   // what stands for the job's secret on the wire; empty: the job has none
  bool are_open = false;  // everybody sees all
};

// What somebody sees who comes from this address (empty: not known) and sent this header Authorization (empty: none).
// Where the job has a secret all is for those who send its key; else for those on this host.
View view_of(const Doors& doors, std::string_view authorization, std::string_view peer_address);

// The same without names of hosts, addresses, process ids and texts. What it lets through it names, member by member:
// one that is added to a snapshot stays out until it is named there, too.
Snapshot counts_only(const Snapshot& snapshot);

}  // namespace elastic::status
