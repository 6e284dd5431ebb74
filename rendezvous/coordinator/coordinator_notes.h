#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/coordinator/coordinator_events.h"
#include "rendezvous/membership/roster.h"

// The notes of a coordinator that have fields for programs beside their text.
namespace elastic::coordinator {

// `how` and `why` are clauses; `text` is the whole sentence.
Note node_is_lost(const membership::Node& node, const std::string& how);
// The node belongs to a round of an earlier coordinator: only its rank is known.
Note node_is_missed(int node_rank, const std::string& how);
Note node_is_unhealthy(const membership::Node& node, std::string text, const std::string& why);
Note node_is_quarantined(const membership::Node& node, std::int64_t for_ms);
// `answer` is what the operator is told.
Note operator_has_ordered(const OperatorOrder& order, const OrderAnswered& answer);
Note job_has_ended(const protocol::JobResult& job_result);
// The node that joins was started with other values of failover, failover_evidence or on_leave than the job's first
// node, whose values hold. Empty if it was not.
std::optional<Note> rules_that_differ(const protocol::NodeJoins& node, const protocol::JobRules& rules);
// The same of --hang and its times.
std::optional<Note> hang_rules_that_differ(const protocol::NodeJoins& node, const protocol::JobRules& rules);

}  // namespace elastic::coordinator
