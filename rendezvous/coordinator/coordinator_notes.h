#pragma once

#include <cstdint>
#include <string>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/membership/roster.h"

// The notes of a coordinator that programs are told more of than their text.
namespace elastic::coordinator {

// `how` and `why` are clauses; `text` is the whole sentence.
Note node_is_lost(const membership::Node& node, const std::string& how);
// Of a round of an earlier coordinator: nothing but its rank is known.
Note node_is_missed(int node_rank, const std::string& how);
Note node_is_unfit(const membership::Node& node, std::string text, const std::string& why);
Note node_is_kept_out(const membership::Node& node, std::int64_t for_ms);
Note job_has_ended(const protocol::Verdict& verdict);

}  // namespace elastic::coordinator
