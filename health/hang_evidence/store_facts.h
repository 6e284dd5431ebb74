#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "health/evidence/store_waiters.h"
#include "health/hang/hang_facts.h"

// What the worker store says, as facts about a hang.
namespace elastic::hang {

// Who has not come to the init of the default group, and who has: these wait there, each for all others.
StoreFacts store_facts_of(const evidence::StoreFacts& seen, std::int32_t world_size);
// For people: "key /default_pg/0//cpu//0/1: 2 clients wait for it".
std::vector<std::string> store_lines(const evidence::StoreFacts& seen);

}  // namespace elastic::hang
