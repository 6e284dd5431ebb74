#pragma once

#include <string>
#include <vector>

#include "cli/flag_checks.h"
#include "cli/launch_plan.h"
#include "cli/parse.h"
#include "cli/run/launch_settings.h"
#include "cli/run/status_only.h"
#include "src/base/environment.h"
#include "src/base/result.h"

namespace elastic::cli {

// How this node meets the others of a job of more than one: fills in the meeting, the store, and what the agent
// brings to its coordinator (terms, rules, rank, address). The id of the run and the restarts stand already.
// Fails on what cannot be met by, with the input, the reason and the remedy.
Status plan_many_nodes(const ParsedFlags& flags, const CheckedFlags& checked, const Environment& environment,
                       const HostView& host, const detect::Detected& detected, LaunchPlan& plan);

// Tells the meeting what deciding where the coordinator is needs to know of the job and of this node; these stand
// already.
void tell_meeting_of_node(run::LaunchSettings& settings);

// As plan_many_nodes, for --coordinator-only: where to listen, with which secret and patience.
Result<transport::MeetingSettings> plan_coordinator_only(const ParsedFlags& flags, const Environment& environment,
                                                         const HostView& host);

// The same for --status: whom to ask, and how to show the answer.
Result<run::StatusRequest> plan_status(const ParsedFlags& flags, const Environment& environment, const HostView& host);

// What --status-key prints. Fails where there is no secret.
Result<std::string> plan_status_key(const ParsedFlags& flags, const Environment& environment, const HostView& host);

// The job's secret, by token_file or variable; empty where it has none. For a job of one node, whose status it guards.
Result<std::string> plan_secret_alone(const ParsedFlags& flags, const CheckedFlags& checked,
                                      const Environment& environment, const HostView& host);

}  // namespace elastic::cli
